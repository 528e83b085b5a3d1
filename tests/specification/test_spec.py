"""What a specification says, and every problem with its place."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from lopen.core.errors import ExitCode, WrongUsage
from lopen.specification.modules import MAX_BYTES, UnreadableSource, find_modules, module_name, spec_path
from lopen.specification.spec import load_specification
from tests.specification.specs import PATH, SOUND, changed, problems, read


def test_a_sound_specification_has_no_problems_and_says_it_all() -> None:
    spec = read(SOUND)
    assert spec.problems == spec.warnings == ()
    assert (spec.module, spec.name, spec.description) == ("shop", "shop", "Sells things.")
    assert [(c.id, c.text, c.line) for c in spec.criteria] == [
        ("SHOP-01", "Prices are rounded half up", 20),
        ("AC-1", "Totals add up", 21),
    ]
    assert spec.command_lines == {
        "verify-setup": None,
        "verify-build": None,
        "verify-tests": "pytest -q",
        "verify-lint": "ruff check .",
        "verify-commit": None,
    }
    assert "Behaviour > Rounding" in [s.address for s in spec.outline.sections]


STRUCTURE = [
    ("", ["1: the specification is empty"]),
    (changed("# Shop\n", "Shop\n"), ["8: the first heading must be the title, an H1: `# …`"]),
    (changed("## Behaviour", "# Behaviour"), [
        "12: a second H1, 'Behaviour': make it an H2",
        "6: no section describes what the module does: write at least one H2 about its domain",
    ]),
    (changed("## Overview", "## Summary"), ["6: the section `## Overview` is missing"]),
    (changed("## Overview", "### Overview"), [
        "6: the section `## Overview` is missing; line 8 has `### Overview`"
    ]),
    (changed("## Dependencies", "## Dependancies"), [
        "6: the section `## Dependencies` is missing; line 23 has `## Dependancies`"
    ]),
    (changed("A small shop.", "```\nA small shop."), [
        "10: unclosed code fence: everything after it counts as code; close it"
    ]),
    (SOUND + "\n~~~\n", ["35: unclosed code fence: everything after it counts as code; close it"]),
    (SOUND + "\n```\nx\n```", []),
    (changed("## Behaviour", "## Notes"), [
        "6: no section describes what the module does: write at least one H2 about its domain"
    ]),
    (changed("### Rounding", "### Rounding\n\n### rounding"), [
        "16: duplicate heading 'Behaviour > rounding' (first on line 14)"
    ]),
    (changed("None.", "None.\n\n## Behaviour"), ["27: duplicate heading 'Behaviour' (first on line 12)"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "found"), STRUCTURE)
def test_problems_of_structure(text: str, found: list[str]) -> None:
    assert sorted(problems(text)) == sorted(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (SOUND, []),
        (changed("None.\n", ""), ["23: the section 'Dependencies' is empty"]),
        (changed("Half up.\n", ""), ["14: the section 'Behaviour > Rounding' is empty"]),
        (changed("Half up.", "TODO: which way?\n\n```\nTODO\n```"), ["16: TODO: write it now, or the model guesses"]),
        (
            changed("None.\n", "None.\n\n## Extra\n\n```\n- [ ] a\n```\n\n1. [x] b\n- [ ] c\n\n### Own\n\n```\n- [ ] d\n```\n"),
            ["33: checkboxes under 'Extra' are not acceptance criteria; move them there"],
        ),
        (changed("- [ ] Totals", "- [x] Totals"), ["21: already ticked; lopen ignores ticks and builds it all the same"]),
        (
            changed("`pytest -q`", "none").replace("`ruff check .`", "none"),
            ["27: no verify command: lopen cannot test what the model builds"],
        ),
        (
            SOUND.replace("- **verify-setup**: none\n- **verify-build**: none\n", ""),
            ["27: verify-setup, verify-build are missing, which count as none"],
        ),
    ],
)  # fmt: skip
def test_warnings(text: str, found: list[str]) -> None:
    assert [str(w).removeprefix(f"{PATH}:") for w in read(text).warnings] == found


FRONT = "---\nname: shop\ndescription: Sells things.\n---\n"
FRONT_MATTER = [
    ("", ["1: the front matter is missing: start with `---`, name, description, `---`"]),
    ("---\nname: shop\n---\n", ["1: the front matter has no description"]),
    ("---\n---\n", ["1: the front matter has no description", "1: the front matter has no name"]),
    ("---\n- name\n---\n", ["2: the front matter must be `key: value` lines"]),
    ("---\ndescription: d\nname: [a]\n---\n", ["1: the front matter has no name"]),
    ("---\nname: a\nb: [1,\nc: 2\n---\n", ["4: the front matter is not valid YAML: expected ',' or ']', but got '<stream end>'"]),
    ("---\nname: a\nb: \x07\n---\n", None),
    ("---\nname: \"\\UFFFFFFFF\"\n---\n", None),
    ("---\na: " + "[" * 5_000 + "\n---\n", None),
    ("---\na: *b\n---\n", ["2: the front matter is not valid YAML: found undefined alias 'b'"]),
]  # fmt: skip


@pytest.mark.parametrize(("front", "found"), FRONT_MATTER, ids=lambda value: repr(value)[:40])
def test_problems_of_the_front_matter(front: str, found: list[str] | None) -> None:
    got = sorted(problems(changed(FRONT, front)))
    if found is None:
        assert len(got) == 1
        assert got[0].startswith("2: the front matter is not valid YAML: ")
    else:
        assert got == found


def test_front_matter_values_are_text_on_one_line_and_make_no_objects() -> None:
    front = "---\nname: 2024-99-99\ndescription: >\n  Sells\n  things.\nother: !!python/name:os.system x\n<<: 3\n---\n"
    spec = read(changed(FRONT, front))
    assert (spec.name, spec.description, spec.problems) == ("2024-99-99", "Sells things.", ())


BAD_NAMES = ["", "..", ".a", "a/b", "a\\b", "a..b", "a b", "é", "a\n", "a" * 65, "-a", "a.lock", "a\0"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_module_may_not_be_called(name: str) -> None:
    with pytest.raises(WrongUsage) as caught:
        module_name(name)
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.hint


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_modules_are_the_folders_that_hold_a_specification(tmp_path: Path) -> None:
    assert find_modules(tmp_path) == []
    for name in ("shop", "auth", "bad name"):
        write(tmp_path / "specs" / name / "SPECIFICATION.md", b"")
    (tmp_path / "specs" / "empty").mkdir()
    (tmp_path / "specs" / "folder" / "SPECIFICATION.md").mkdir(parents=True)
    assert find_modules(tmp_path) == ["auth", "shop"]
    assert spec_path(tmp_path, "shop").is_file()


def test_a_specification_is_loaded_with_its_ids(tmp_path: Path) -> None:
    path = write(tmp_path / "SPECIFICATION.md", SOUND.encode())
    spec = load_specification(path, module="shop", known_ids={"Totals add up": "AC-9"})
    assert [c.id for c in spec.criteria] == ["SHOP-01", "AC-9"]
    assert spec.text == SOUND


def refusal(path: Path) -> UnreadableSource:
    with pytest.raises(UnreadableSource) as caught:
        load_specification(path, module="m")
    assert caught.value.hint
    return caught.value


def test_a_specification_of_16_mb_is_read_and_a_larger_one_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "s.md", b"a" * MAX_BYTES)
    assert len(load_specification(path, module="m").text) == MAX_BYTES
    write(path, b"a" * (MAX_BYTES + 1))
    assert "larger than 16 MB" in refusal(path).message


def test_a_file_that_is_not_utf8_is_refused_with_line_and_byte(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "s.md", "# a\nb\né".encode("latin-1"))).message
    assert "s.md:3: not UTF-8 at byte 6" in message


def test_a_folder_a_pipe_and_a_socket_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        assert str(path) in refusal(path).message
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        assert "is not a regular file" in refusal(tmp_path / "socket").message
