"""What a verify command finds in the clean room is what a fresh clone of the commit holds, or the work is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lopen.core.clock import FakeClock
from lopen.git.checkout import Checkout
from lopen.git.errors import GitError
from lopen.git.repository import Repository
from lopen.sandbox.choice import Mode, choose
from lopen.sandbox.command import Command
from lopen.tools import room_contents
from lopen.tools.clean_room import CleanRoom
from tests.needs import require_sandbox

# What lies in the project, each in a folder of its own where it can
PLACED = {
    "modes": "mkdir modes; for m in 600 644 700 755 444; do echo $m > modes/$m; chmod $m modes/$m; done; chmod 700 modes",
    "links": "ln -s /etc/hostname out; ln -s ../.. above; ln -s nowhere gone; ln -s . self; ln -s .git/config git",
    "names": "mkdir names; touch names/a names/A names/é; touch \"names/$(printf 'new\\nline')\" \"names/$(printf 'b\\377')\"",
    "empty folders": "mkdir -p empty/er; touch .keep",
    "nested repositories": "git init -q nested; touch nested/file; mkdir -p deep/.git; touch deep/.git/HEAD deep/file",
    "ignored files": "echo '*.log' > .gitignore; touch x.log; mkdir own; echo '*' > own/.gitignore; touch own/file",
    "ignored by the person": "echo mine >> .git/info/exclude; touch mine; echo theirs > ../excludes; "
    "git config core.excludesFile $PWD/../excludes; touch theirs",
    "archive attributes": "echo '/tests export-ignore' > .gitattributes; echo 'v export-subst' >> .gitattributes; "
    "mkdir tests; touch tests/file; echo '$Format:%H$' > v",
    "line ends": "echo '* text=auto' > .gitattributes; printf 'a\\r\\nb\\n' > mixed; printf 'a\\r\\n' > crlf; printf 'a\\r\\n\\0' > binary",
    "attributes of this checkout": "echo '*.t eol=crlf ident' > .git/info/attributes; echo '$Id$' > a.t",
    "attributes that were there": "printf '%s\\n' 'k* ident' '*.bat eol=crlf' '*.u working-tree-encoding=UTF-16LE' 'x.sh text eol=crlf' "
    "> .gitattributes; echo '$Id$' > kept; printf 'a\\nb\\r\\n' > a.bat; printf 'h\\0i\\0\\n\\0' > t.u; "
    "printf '#!/bin/sh\\necho\\n' > x.sh; chmod +x x.sh; git add .; git commit -qm Rules; echo '$Id$ again' > kept; echo c >> a.bat",
    "hooks": "printf '#!/bin/sh\\ntouch hooked' > .git/hooks/post-checkout; chmod +x .git/hooks/*",
    "flags of the index": "git update-index --assume-unchanged kept; git update-index --skip-worktree also; echo 2 > kept; echo 2 > also",
    "modes that do not count": "git config core.fileMode false; chmod +x kept; touch run; chmod +x run",
    "a sparse checkout": "mkdir a b; touch a/1 b/1; git add .; git commit -qm More; git sparse-checkout set --cone a; echo 2 > a/1",
    "pipes": "mkfifo pipe",
    "a file for a folder": "rm -r folder; echo file > folder",
    "a folder for a file": "rm kept; mkdir kept; echo file > kept/file",
    "a deleted file": "rm kept also",
    "a submodule": "git -c protocol.file.allow=always submodule --quiet add ../library lib; git commit -qm Library",
}
# Attributes by which a clone holds other bytes: the work is refused
REFUSED = {
    "line ends of another system": "echo 'kept eol=crlf' > .gitattributes",
    "an encoding": "echo 'kept working-tree-encoding=UTF-16LE' > .gitattributes",
    "an identifier": "echo 'kept ident' > .gitattributes; echo '$Id$' > kept",
    "a filter": "echo 'kept filter=lfs' > .gitattributes",
}
# Run in the room and in the clone: every file with its mode and content, and git's own view
CENSUS = r"""exec 2> /dev/null
find . -path ./.git -prune -o -printf '%P %M %l\0' | LC_ALL=C sort -z | tr '\0\n' '\n?'
find . -path ./.git -prune -o -type f -exec sha256sum -z {} + | LC_ALL=C sort -z | tr '\0\n' '\n?'
git status --porcelain; git ls-files -s; git rev-parse 'HEAD^{tree}' HEAD~1; git describe --tags --abbrev=0
git log --format=%s HEAD~1; git branch --show-current; git fsck && echo whole; git stash list; git cat-file -t $BLOB
git tag; git config --get-regexp 'filter|hooks|attributes|excludes'; ls .git/hooks/post-checkout; true
"""

# What tells a fresh clone of the branch, beyond that
SIGNS = r"""git log --format='%an <%ae> %cn %B'; git remote -v; git config --local --list; git reflog --format=%gs; git status -sb
git for-each-ref --format='%(refname) %(symref)'; git reflog origin/HEAD --format=%gs; git describe --all
git rev-parse HEAD@{upstream} | grep -c $(git rev-parse HEAD); cd $(git rev-parse --git-dir)
cat description; find . -maxdepth 2 -type d -not -path '*objects/*' | LC_ALL=C sort
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository on the module's branch."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.org\n[safe]\n\tdirectory = *\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("library", "project"):
        shell(tmp_path, f"git init -q -b main {name}; cd {name}; mkdir folder; echo 1 > folder/file; echo 1 > kept; "
              "echo 1 > also; git add .; git commit -qm Begin; git tag -am One v1; git switch -qc lopen/calc")  # fmt: skip
    return tmp_path / "project"


def shell(folder: Path, line: str) -> str:
    done = subprocess.run(["/bin/sh", "-ec", line], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8", "replace")


def in_room(root: Path, repository: Checkout, tree: str, mode: Mode, line: str) -> str:
    room = CleanRoom(root.parent / "rooms", repository, root, mounted=mode == "bwrap", exposed=mode == "none")
    try:
        command = Command(line, root, room=room.enter(tree), trusted=True)
        result = choose(mode, root).run(command)
        room.leave(wanted=lambda _: False)
    finally:
        room.close()
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("mode", ["bwrap", "none"])
def test_the_room_and_a_clone_hold_the_same(root: Path, tmp_path: Path, mode: Mode) -> None:
    require_sandbox(mode)
    for number, (what, line) in enumerate(PLACED.items()):
        place = tmp_path / f"case{number}" / "project"
        shell(tmp_path, f"mkdir case{number}; cp -a project library case{number}")
        blob = shell(
            place, "echo secret | git hash-object -w --stdin; echo stash >> kept; git stash -q"
        ).strip()
        shell(place, f"{line}; echo work > work")
        repository = Repository.open(place, clock=FakeClock())
        tree = repository.snapshot()
        seen = in_room(place, repository, tree, mode, f"BLOB={blob}; {CENSUS}{SIGNS}")
        head = repository.head()
        repository.commit(tree, head.commit, "Work\n", "lopen/calc")
        shell(tmp_path, f"git clone -q -b lopen/calc file://{place} clone{number}")

        cloned = shell(
            tmp_path / f"clone{number}", f"set +e; rm -f .git/hooks/*; BLOB={blob}; {CENSUS}{SIGNS}"
        )

        assert seen.splitlines() == cloned.splitlines(), what


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_a_clone_differ_is_named(root: Path, what: str) -> None:
    shell(root, REFUSED[what])
    repository = Repository.open(root, clock=FakeClock())
    tree = repository.snapshot() if "encoding" not in what else ""

    found = repository.conversions(
        tree or shell(root, "git add .gitattributes; git write-tree").strip(), ["kept"]
    )

    assert [path for path, _ in found] == ["kept"]


@pytest.mark.parametrize("mode", ["bwrap", "none"])
def test_without_lopens_commits_the_room_holds_a_clone_too(root: Path, tmp_path: Path, mode: Mode) -> None:
    require_sandbox(mode)
    blob = shell(root, "echo secret | git hash-object -w --stdin; echo stash >> kept; git stash -q").strip()
    shell(root, "echo work > work; rm also; git config alias.x '!touch ran'; mkdir .lopen")
    shadow = Repository.shadow(root, root / ".lopen" / "cache" / "shadow", clock=FakeClock())
    shell(tmp_path, f"git clone -q -b lopen/calc file://{root} clone; cp {root}/work clone")

    for _ in range(2):  # what is there is brought on
        seen = in_room(
            root, shadow, shadow.snapshot(), mode, f"BLOB={blob}; {CENSUS}git config alias.x; true"
        )

        shell(tmp_path / "clone", "git rm -qf also; git add .; git commit -qm Work; rm -rf .git/hooks")
        assert seen.splitlines() == shell(tmp_path / "clone", f"set +e; BLOB={blob}; {CENSUS}").splitlines()
        shell(root, "echo more > more")
        shell(
            tmp_path / "clone",
            "git reset -q --soft HEAD~1; echo more > more; git reset -q; git checkout also",
        )

    shell(root, "rm -rf .git")
    plain = Repository.shadow(root, root / ".lopen" / "cache" / "shadow", clock=FakeClock())
    assert in_room(root, plain, plain.snapshot(), mode, "ls -A").split() == ["folder", "kept", "more", "work"]


def test_large_files_are_read_one_after_another(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_contents, "BATCH_BYTES", 100_000)
    shell(root, "for i in 1 2 3; do head -c 60000 /dev/urandom > large$i; done")
    repository = Repository.open(root, clock=FakeClock())
    tree = repository.snapshot()

    portions = list(room_contents.batches(repository, repository.entries(tree)))

    assert max(len([path for path in portion if path.startswith("large")]) for portion in portions) == 1


def test_a_partial_clone_is_told_what_it_lacks(root: Path, tmp_path: Path) -> None:
    shell(root, "git config uploadpack.allowFilter true; echo 2 > folder/file; git commit -qam Two")
    shell(tmp_path, f"git clone -q --sparse --filter=blob:none file://{root} part")
    part = tmp_path / "part"
    repository = Repository.open(part, clock=FakeClock())
    tree = repository.snapshot()

    with pytest.raises(GitError, match="lacks the content of 1 files") as told:
        in_room(part, repository, tree, "none", "true")

    shell(part, str(told.value.hint).removeprefix("get them with: "))
    assert in_room(part, repository, tree, "none", "cat folder/file") == "2\n"
