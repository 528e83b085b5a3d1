"""Values that are known as secrets: of variables and files, precise enough that texts stay readable."""

from __future__ import annotations

from pathlib import Path

from lopen.sandbox.known_secrets import KnownSecrets, is_distinctive

TOKEN = "t0p-secret-value"


def test_values_come_from_variables_and_files_by_name(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# a comment\nexport DB_PASSWORD = 'from file 1' # why\nPORT=80808080\nAPI_KEY=bare-file-2 # x\n"
    )
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "prod.env").write_text('SECRET="quoted-file-3"\nSHORT_TOKEN=x\n')
    (tmp_path / ".env.example").write_text("API_KEY=example-file-4\n")
    known = KnownSecrets(tmp_path, {"API_TOKEN": TOKEN, "LANGUAGE": "plain-language", "SESSION": "wayland"})

    assert known.values == tuple(sorted([TOKEN, "from file 1", "bare-file-2", "quoted-file-3"]))
    assert known.hide(f"a {TOKEN} b") == "a [redacted:known] b"
    assert known.sources(f"{TOKEN} and quoted-file-3") == {"API_TOKEN", "app/prod.env"}


def test_a_file_that_changed_is_read_again_and_what_was_known_stays_so(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TOKEN=the-first-one\n")
    known = KnownSecrets(tmp_path, {})
    (tmp_path / ".env").write_text("TOKEN=the-second-one\n")
    known.refresh()
    (tmp_path / ".env").unlink()
    known.refresh()
    assert known.values == ("the-first-one", "the-second-one")


def test_a_file_that_appears_in_the_root_is_read_at_the_next_refresh(tmp_path: Path) -> None:
    known = KnownSecrets(tmp_path, {})
    (tmp_path / ".env.local").write_text("TOKEN=came-while-it-ran\n")
    assert known.current() == ("came-while-it-ran",)


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    (tmp_path / ".envrc").write_bytes(b"TOKEN=\xff\xfe-not-text\n")
    (tmp_path / "x.env").symlink_to(tmp_path / "gone")
    assert KnownSecrets(tmp_path / "nowhere", {}).values == ()
    assert KnownSecrets(tmp_path, {}).values == ()


def test_words_placeholders_and_paths_are_no_secrets() -> None:
    values = ["short", "changeme-please", "gnomewaylan", "/usr/bin/env", "${TOKEN_HERE}"]
    assert [value for value in values if is_distinctive(value)] == []


def test_files_at_any_depth_are_known_but_not_those_of_caches(tmp_path: Path) -> None:
    for n, folder in enumerate(
        ["a/b", "a/b/c/d/e", ".devcontainer/x", "node_modules/x", "a/.venv/y", ".git/z"]
    ):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / ".env").write_text(f"TOKEN=the-secret-value-{n}\n")
    (tmp_path / "loop").symlink_to(tmp_path)

    known = KnownSecrets(tmp_path, {})

    assert known.values == tuple(f"the-secret-value-{n}" for n in range(3))
    (tmp_path / "a/b/.env").write_text("TOKEN=another-secret-value\n")
    assert "another-secret-value" in known.current()


def test_a_file_that_a_tool_reads_is_known_from_then_on(tmp_path: Path) -> None:
    known = KnownSecrets(tmp_path, {})
    (tmp_path / "a/b").mkdir(parents=True)
    for name in (".env", ".env.example", "notes.txt"):
        (tmp_path / "a/b" / name).write_text(f"TOKEN=secret-in-{name}-1\n")
        known.watch_file(str(tmp_path / "a/b" / name))
    assert known.values == ("secret-in-.env-1",)
