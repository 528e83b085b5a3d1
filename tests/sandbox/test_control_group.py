"""Control groups of commands: which group lopen may use, and what becomes of a command's processes in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lopen.core.process_identity import start_time
from lopen.sandbox import control_group
from lopen.sandbox.choice import Mode
from lopen.sandbox.command import CommandLimits
from lopen.sandbox.control_group import (
    NOT_DELEGATED,
    ControlGroup,
    end_left_groups,
    examined,
    group_folder,
    limit_files,
    members,
    obstacle,
    ran_out_of_memory,
)
from lopen.sandbox.process_tree import read_process
from tests.needs import require_sandbox
from tests.sandbox.world import World

WAIT_S = 20
HYBRID = "8:pids:/\n4:memory:/x\n0::/\n"
SCOPE = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope\n"
V1 = "30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
UNIFIED = "35 24 0:31 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
PURE = "35 24 0:31 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
CONTAINER = "35 24 0:31 /docker/1f /sys/fs/cgroup ro - cgroup2 cgroup rw\n"


@pytest.mark.parametrize(
    ("cgroup", "mounts", "folder"),
    [
        (HYBRID, V1 + UNIFIED, "/sys/fs/cgroup/unified"),
        (SCOPE, PURE, f"/sys/fs/cgroup{SCOPE[3:-1]}"),
        ("0::/docker/1f/job\n", CONTAINER, "/sys/fs/cgroup/job"),
        ("0::/docker/1f\n", CONTAINER, "/sys/fs/cgroup"),
        ("0::/docker/1fa\n", CONTAINER, None),
        ("0::/../other\n", PURE, None),
        ("4:memory:/x\n", V1, None),
        (SCOPE, V1, None),
    ],
)
def test_the_group_of_a_process_is_found(cgroup: str, mounts: str, folder: str | None) -> None:
    assert group_folder(cgroup, mounts) == (Path(folder) if folder else None)


@pytest.mark.parametrize(
    ("controllers", "enabled", "processes", "why"),
    [
        ("cpu io memory pids\n", "", [7, 8], ""),
        ("memory pids", "memory pids", [7, 99], ""),
        ("memory pids", "pids", [7, 99], "not lopen's"),
        ("hugetlb\n", "", [7], NOT_DELEGATED),
        ("pids\n", "pids", [], NOT_DELEGATED),
    ],
)
def test_which_groups_lopen_can_use(controllers: str, enabled: str, processes: list[int], why: str) -> None:
    found = obstacle(controllers, enabled, processes, [7, 8])
    assert why in found
    assert bool(found) == bool(why)


def test_what_the_files_of_a_group_say() -> None:
    files = limit_files(CommandLimits(processes=100, memory_mb=512))
    assert files["memory.max"] == "512000000"
    assert int(files["pids.max"]) > 100, (
        "so that the command is ended, and told why, before the kernel refuses"
    )
    assert ran_out_of_memory("low 0\nmax 40\noom 1\noom_kill 3\noom_group_kill 1\n")
    assert not ran_out_of_memory("low 0\nmax 40\noom 0\noom_kill 1\n"), (
        "the machine's memory, not the group's"
    )


@pytest.fixture
def top() -> Iterator[Path]:
    """A group in which groups can be made, without controllers."""
    own = group_folder(*(Path(f"/proc/self/{name}").read_text() for name in ("cgroup", "mountinfo")))
    folder = (own or Path("/none")) / f"lopen-tests-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / "cgroup.procs").write_text("")
    except FileNotFoundError:
        pytest.skip("no control groups of version 2 are mounted")
    except PermissionError:
        pytest.skip("this user may not make control groups")
    except OSError:
        pass  # a process id is missing, as it has to be
    try:
        yield folder
    finally:
        for inner in [*folder.glob("*/*/cgroup.kill"), *folder.glob("*/cgroup.kill")]:
            inner.write_text("1")
            gone(inner.parent)
        gone(folder)


def gone(folder: Path) -> bool:
    """Remove a group as soon as its processes are gone."""
    ends = time.monotonic() + WAIT_S
    while folder.exists() and time.monotonic() < ends:
        try:
            folder.rmdir()
        except OSError:
            time.sleep(0.01)
    return not folder.exists()


@pytest.mark.parametrize("mode", ["bwrap", "landlock", "none"])
def test_a_daemon_in_a_session_of_its_own_ends_with_the_group(
    world: World, mode: Mode, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_sandbox(mode)
    monkeypatch.setattr(control_group, "home", lambda pid: top)
    monkeypatch.setattr(control_group, "limit_files", lambda limits: {})
    line = "(env -i setsid sh -c 'sleep 60' &); while [ ! -e go ]; do sleep 0.02; done; echo done"
    results = []
    running = threading.Thread(target=lambda: results.append(world.run(mode, line)))
    running.start()
    ends, found = time.monotonic() + WAIT_S, set[int]()
    while len(found) < 3 and time.monotonic() < ends and running.is_alive():
        found = {pid for folder in top.glob("lopen-*") for pid in members(folder)}
        time.sleep(0.02)
    (world.root / "go").touch()
    running.join(WAIT_S)
    assert [(r.exit_code, r.output) for r in results] == [(0, "done\n")]
    assert len(found) >= 3, "the shell, the daemon and what it runs"
    left = [process for pid in found if (process := read_process(pid)) and process.state != "Z"]
    assert not left
    assert not list(top.glob("lopen-*"))


def test_what_a_killed_lopen_left_is_ended(top: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    command, own = (top / f"lopen-{dead.pid}-1-{of}" for of in ("3", "own"))
    alive = top / f"lopen-{os.getpid()}-{start_time(os.getpid())}-4"
    sleeping = []
    for folder in (command, own, alive):
        folder.mkdir()
        sleeping.append(subprocess.Popen(["sleep", "60"], start_new_session=True))
        (folder / "cgroup.procs").write_text(str(sleeping[-1].pid))
    try:
        threading.Thread(target=sleeping[0].wait).start()
        end_left_groups(top)
        assert [s.poll() is None for s in sleeping] == [False, True, True]
        assert [folder.exists() for folder in (command, own, alive)] == [False, True, True]
    finally:
        for process in sleeping:
            process.kill()
            process.wait()


# hugetlb stands for the controllers that are not delegated on every machine
LOPEN = """
import os, sys
from pathlib import Path
from lopen.core.process_identity import start_time
from lopen.sandbox import control_group
from lopen.sandbox.choice import Unconfined
from lopen.sandbox.command import Command, CommandLimits
root = Path(sys.argv[1])
control_group.CONTROLLERS = frozenset({"hugetlb"})
control_group.limit_files = lambda limits: {"hugetlb.2MB.max": "0"}
ran = Unconfined(root).run(Command("sleep 0.5; cat /proc/self/cgroup", root))
print(Path("/proc/self/cgroup").read_text(), ran.output, ran.exit_code)
"""


def test_lopen_moves_out_of_the_group_that_holds_those_of_commands(top: Path, tmp_path: Path) -> None:
    above = top.parent / "cgroup.subtree_control"
    enabled = "hugetlb" in above.read_text()
    try:
        above.write_text("+hugetlb")
    except OSError:
        pytest.skip("no controller can be enabled here")
    try:
        os.setxattr(top, "trusted.delegate", b"1")
        start = (
            f"echo $$ > {top}/cgroup.procs; exec {sys.executable} -c '{textwrap.dedent(LOPEN)}' {tmp_path}"
        )
        ran = subprocess.run(["sh", "-c", start], capture_output=True, text=True, timeout=WAIT_S, check=False)
        groups = [
            line.rpartition("/")[2] for line in ran.stdout.splitlines() if line.strip().startswith("0::")
        ]
        assert [group.rpartition("-")[2] for group in groups] == ["own", "1"], ran
        assert ran.stdout.rstrip().endswith(" 0")
        assert [folder.name for folder in top.glob("lopen-*")] == groups[:1]
        assert gone(top / groups[0])
    finally:
        (top / "cgroup.subtree_control").write_text("-hugetlb")
        if not enabled:
            above.write_text("-hugetlb")


def test_the_kernel_ends_a_tree_that_uses_too_much_memory() -> None:
    folder, why = examined()
    if folder is None:
        pytest.skip(why)
    group = ControlGroup(CommandLimits(memory_mb=50))
    eat = "import sys; sys.stdin.readline(); x = bytearray(200_000_000); print('ate')"
    process = subprocess.Popen(
        [sys.executable, "-c", eat], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        group.take([process.pid])
        out, _ = process.communicate(b"\n", timeout=WAIT_S)
        assert (out, process.returncode) == (b"", -9)
        assert group.remove() == "memory"
    finally:
        process.kill()
        process.wait()
