"""A command's environment holds what tools need, and nothing that anyone would mind losing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.core.redaction import looks_secret_name, looks_secret_value
from lopen.sandbox.environment import command_environment, mount_points, search_path

HOME = Path("/p/.lopen/cache/home")


def test_only_what_tools_need_is_kept() -> None:
    base = {
        "PATH": "/usr/bin",
        "LANG": "C",
        "LC_TIME": "C",
        "MY_THING": "x",
        "LD_PRELOAD": "x",
        "GIT_DIR": "x",
        "HOME": "/h",
    }
    got = command_environment(base, {}, home=HOME, session="s")
    assert {k: got[k] for k in ("PATH", "LANG", "LC_TIME", "HOME", "TERM", "LOPEN_UNDER_SESSION")} == {
        "PATH": "/usr/bin",
        "LANG": "C",
        "LC_TIME": "C",
        "HOME": str(HOME),
        "TERM": "dumb",
        "LOPEN_UNDER_SESSION": "s",
    }
    assert {"MY_THING", "LD_PRELOAD", "GIT_DIR"}.isdisjoint(got)


def test_an_allowed_name_with_a_secret_in_it_is_dropped() -> None:
    base = {"HTTPS_PROXY": "http://u:h4rd2guess@p:1", "HTTP_PROXY": "http://p:1"}
    got = command_environment(base, {}, home=HOME)
    assert "HTTPS_PROXY" not in got
    assert got["HTTP_PROXY"] == "http://p:1"


def test_the_path_depends_on_no_folder_a_command_chooses() -> None:
    assert search_path(".:/usr/bin::bin:/usr/bin:/bin") == "/usr/bin:/bin"
    assert search_path("").startswith("/usr/local")


def test_a_tool_that_finds_itself_by_its_home_is_told_where_it_is(tmp_path: Path) -> None:
    (tmp_path / ".rustup").mkdir()
    got = command_environment({"HOME": str(tmp_path)}, {}, home=HOME)
    assert got["RUSTUP_HOME"] == str(tmp_path / ".rustup")
    assert "NVM_DIR" not in got


@pytest.mark.parametrize(
    "between", ["a file", "a dangling link", "a link to a folder", "a file at the place"]
)
def test_nothing_is_mounted_below_a_file_or_a_link(tmp_path: Path, between: str) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    for folder in (outside, root, source := tmp_path / "installed"):
        folder.mkdir()
    if between == "a file at the place":
        (root / "a/b").mkdir(parents=True)
        (root / "a/b/node_modules").write_text("mine")
    elif between == "a file":
        (root / "a").write_text("mine")
    else:
        (root / "a").symlink_to(outside if "folder" in between else tmp_path / "nowhere")
    other = (source, root / "c/d/node_modules")

    with mount_points([(source, root / "a/b/node_modules"), other], root) as usable:
        assert usable == [other]
        assert other[1].is_dir()

    assert list(outside.iterdir()) == []
    assert [path.name for path in root.iterdir()] == ["a"]


@given(
    st.dictionaries(st.text("ABKEY_TOKEN", max_size=12), st.text(max_size=12)),
    st.dictionaries(st.text("ABKEY_SECRET", max_size=12), st.text(max_size=12)),
)
def test_nothing_secret_comes_through(base: dict[str, str], extra: dict[str, str]) -> None:
    got = command_environment(base, extra, home=HOME)
    own = {"LOPEN_UNDER_SESSION"}
    assert not [n for n in got if n not in own and looks_secret_name(n)]
    assert not [n for n, v in got.items() if looks_secret_value(v)]
