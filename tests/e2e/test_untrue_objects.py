"""A model whose commands have git answer with other bytes than those that a commit holds completes nothing."""

from __future__ import annotations

import base64
import hashlib
import zlib

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.project import code, plan, verified

BAD, GOOD = "def add(a, b):\n    return 4\n", "def add(a, b):\n    return a + b\n"


def stored_as(name_of: str, content: str, objects: str) -> tuple[str, dict[str, str]]:
    """Return the call that stores `content` under the name of `name_of`."""
    whole = [b"blob %d\0%s" % (len(text.encode()), text.encode()) for text in (name_of, content)]
    name = hashlib.sha1(whole[0], usedforsecurity=False).hexdigest()
    place, data = f"{objects}/{name[:2]}", base64.b64encode(zlib.compress(whole[1])).decode()
    line = f"mkdir -p {place}; rm -f {place}/{name[2:]}; echo {data} | base64 -d > {place}/{name[2:]}"
    return "run_command", {"command": line}


@pytest.mark.parametrize(
    ("mode", "objects"),
    [("none", ".git/objects"), ("landlock", ".git/objects"), ("none", ".lopen/cache/shadow/objects")],
)
def test_a_lying_object_store_completes_nothing(make_project: MakeProject, mode: str, objects: str) -> None:
    _, *tests = code()
    written = [("write_file", {"path": "calc.py", "content": BAD}), *tests]
    check, judge, complete = verified("calc-t1")
    project = make_project(
        [
            plan(),
            tools(stored_as(BAD, GOOD, objects)),
            tools(*written, check, judge),
            tools(stored_as(BAD, BAD, objects)),
            tools(complete),
        ],
        LOPEN_SANDBOX__MODE=mode,
        LOPEN_GIT__ENABLED=str(objects.startswith(".git")).lower(),
    )
    project.specify()

    ran = project.approved_run()

    assert ran.code == 1, ran.out
    assert "put back" in project.lopen("log").out
    assert project.read("calc.py") == BAD
    assert project.oracle_requests == []


# A pack whose index gives a blob another name; then the command ends lopen, which so cannot look
PACKED = """
name=$(echo evil | git hash-object -w --stdin)
pack=$(echo $name | git pack-objects -q .git/objects/pack/pack)
index=.git/objects/pack/pack-$pack.idx
chmod u+w $index
python3 -c 'import sys; p, n = sys.argv[1:]; b = open(p, "rb").read().replace(bytes.fromhex(n), bytes(20)); open(p, "wb").write(b)' $index $name
kill -9 $PPID; sleep 20
"""


def test_what_a_command_stored_before_it_killed_the_run_is_checked(make_project: MakeProject) -> None:
    plant, work = tools(("run_command", {"command": PACKED})), tools(*code(), *verified("calc-t1"))
    project = make_project([plan(), plant, work])
    project.specify()
    killed = project.approved_run()
    packs = project.root / ".git/objects/pack"
    assert killed.code == -9, killed.err
    assert [path.suffix for path in packs.iterdir() if path.suffix == ".idx"] == [".idx"]

    ran = project.resume()

    assert ran.code == 0, ran.out + ran.err
    assert not list(packs.glob("*.idx"))
    assert "a killed run's command stored untrue objects" in project.lopen("log").out
    assert "untrue objects" not in project.lopen("run", "calc").out


EDIT = "sed -i 's/^- .*/- [ ] anything holds/' specs/calc/SPECIFICATION.md"


def test_a_specification_edited_before_a_kill_needs_a_person(make_project: MakeProject) -> None:
    edit = tools(("run_command", {"command": f"{EDIT}; kill -9 $PPID; sleep 20"}))
    work = tools(*code(), *verified("calc-t1"))
    project = make_project([plan(), edit, work], LOPEN_SANDBOX__MODE="none")
    project.specify()
    assert project.approved_run().code == -9
    asked = len(project.requests)

    for _ in range(2):
        ran = project.resume()
        assert (ran.code, len(project.requests)) == (3, asked), ran.out + ran.err
        assert "git checkout specs/calc/SPECIFICATION.md takes it back" in ran.out + ran.err

    project.git("checkout", "-q", "specs/calc/SPECIFICATION.md")
    ran = project.resume()
    assert ran.code == 0, ran.out + ran.err


def test_a_specification_is_put_back_where_git_cannot_be_checked(make_project: MakeProject) -> None:
    line = f"{EDIT}; mkdir .git/objects/ab; for i in $(seq 10000 18000); do : > .git/objects/ab/{'c' * 33}$i; done"
    project = make_project([plan(), tools(("run_command", {"command": line}))], LOPEN_SANDBOX__MODE="none")
    project.specify()
    before = project.read("specs/calc/SPECIFICATION.md")

    ran = project.lopen(
        "approve", "calc", "--yes", "--run",
        arrange=[["tests.crash.faults:replace", "lopen.git.stored_objects:LONGEST_CHECK_S", 0.02]],
    )  # fmt: skip

    assert ran.code == 1, ran.out
    assert "checking new objects" in ran.err
    assert project.read("specs/calc/SPECIFICATION.md") == before
    assert "put back: specs/calc/SPECIFICATION.md" in ran.err + ran.out
