"""What every mode does alike: results, limits, the environment, and an end to everything that was started."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from pathlib import Path

import pytest

from lopen.core.errors import ExitCode, Stopped
from lopen.sandbox.bubblewrap import Bubblewrap
from lopen.sandbox.choice import Mode, Unconfined
from lopen.sandbox.command import Command, CommandLimits, Sandbox, SandboxFailed
from lopen.sandbox.environment import SandboxOptions
from lopen.sandbox.landlock import Landlock
from lopen.sandbox.process_tree import descendants
from tests.needs import require_sandbox
from tests.sandbox.world import World, processes_with

MODES: tuple[Mode, ...] = ("bwrap", "landlock", "none")
KINDS: dict[Mode, type[Bubblewrap] | type[Landlock] | type[Unconfined]] = {
    "bwrap": Bubblewrap,
    "landlock": Landlock,
    "none": Unconfined,
}


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Mode:
    chosen: Mode = request.param
    require_sandbox(chosen)
    return chosen


def limited(mode: Mode, world: World, limits: CommandLimits) -> Sandbox:
    require_sandbox(mode)
    return KINDS[mode](world.root, SandboxOptions(limits, environ=world.environ))


def test_both_streams_come_in_order_with_the_exit_code(mode: Mode, world: World) -> None:
    result = world.run(mode, "echo one; echo two >&2; echo größe; exit 7")
    assert (result.output, result.exit_code) == ("one\ntwo\ngröße\n", 7)
    assert (result.truncated, result.timed_out, result.killed_by) == (False, False, "")


def test_an_argument_list_is_run_as_it_is(mode: Mode, world: World) -> None:
    result = world.sandbox(mode).run(Command(("printf", "%s|", "a b", "$HOME", ""), world.root))
    assert result.output == "a b|$HOME||"


def test_a_command_runs_in_its_folder_with_the_caches_for_a_home(mode: Mode, world: World) -> None:
    result = world.sandbox(mode).run(Command("pwd; echo $HOME; echo x > $HOME/kept", world.root / "src"))
    assert result.output.splitlines() == [f"{world.root}/src", f"{world.root}/.lopen/cache/home"]
    assert (world.root / ".lopen/cache/home/kept").exists()


def test_a_folder_outside_is_refused(mode: Mode, world: World) -> None:
    (world.root / "out").symlink_to(world.beside)
    for cwd in (world.base, world.root / "out"):
        with pytest.raises(SandboxFailed, match="outside"):
            world.sandbox(mode).run(Command("true", cwd))


@pytest.mark.parametrize("confining", ["bwrap", "landlock"])
def test_temporary_files_work_and_are_gone_afterwards(confining: Mode, world: World) -> None:
    result = world.run(confining, "f=$(mktemp) && echo x > $f && cat $f && echo $f")
    content, name = result.output.split()
    assert content == "x"
    assert not Path(name).exists()


def test_the_exit_of_a_killed_command_says_the_signal(mode: Mode, world: World) -> None:
    assert world.run(mode, "kill -SEGV $$").exit_code == 128 + signal.SIGSEGV


def test_a_program_that_is_not_there_is_an_exit_code_or_a_refusal(mode: Mode, world: World) -> None:
    assert world.run(mode, "no-such-program").exit_code == 127
    try:
        result = world.sandbox(mode).run(Command(("no-such-program",), world.root))
    except SandboxFailed as failed:
        assert "No such file" in failed.message  # noqa: PT017 - bwrap answers by an exit code instead
    else:
        assert result.exit_code != 0


def test_time_is_up_for_a_whole_tree(mode: Mode, world: World) -> None:
    line = (
        f"echo begun; trap '' TERM; setsid -f sleep {world.token}; sleep {world.token} & sleep {world.token}"
    )
    result = world.run(mode, line, timeout_s=0.4)
    assert (result.timed_out, result.killed_by, result.exit_code) == (True, "timeout", 137)
    assert result.output == "begun\n"
    assert processes_with(world.token) == []


def test_a_flood_of_output_is_cut_in_the_middle(mode: Mode, world: World) -> None:
    result = world.run(mode, "echo first; yes | head -c 3000000; echo last")
    assert result.truncated
    assert len(result.output) <= 30_000
    assert result.output.startswith("first\ny\n")
    assert result.output.endswith("y\nlast\n")
    assert "bytes omitted" in result.output


def test_endless_output_ends_the_command(mode: Mode, world: World) -> None:
    result = limited(mode, world, CommandLimits(output_mb=2)).run(Command("yes", world.root, timeout_s=20))
    assert (result.killed_by, result.timed_out) == ("output", False)


def test_a_command_that_multiplies_is_ended(mode: Mode, world: World) -> None:
    # Bounded by itself: a test must not be able to take the machine down, whatever the code under test does.
    bomb = f"for i in $(seq 300); do sleep {world.token} & done; wait"
    result = limited(mode, world, CommandLimits(processes=60)).run(Command(bomb, world.root, timeout_s=20))
    assert result.killed_by == "processes" or "fork" in result.output.lower()
    assert processes_with(world.token) == []


def test_a_file_that_grows_too_large_is_stopped(mode: Mode, world: World) -> None:
    result = limited(mode, world, CommandLimits(file_mb=1)).run(
        Command("sleep 0.05; dd if=/dev/zero of=big bs=64k count=100", world.root)
    )
    assert result.exit_code != 0
    assert (world.root / "big").stat().st_size <= 1_000_000


@pytest.mark.parametrize("confining", ["bwrap", "landlock"])
def test_a_process_that_takes_too_much_memory_fails(confining: Mode, world: World) -> None:
    hungry = f"{world.words()['python']} 'x = bytearray(300_000_000)'"
    result = limited(confining, world, CommandLimits(memory_mb=100)).run(Command(hungry, world.root))
    assert "MemoryError" in result.output


def test_a_tree_that_takes_too_much_memory_together_is_ended(mode: Mode, world: World) -> None:
    hungry = f"""{world.words()["python"]} 'import time; x = bytearray(60_000_000); time.sleep(20)' &"""
    sandbox = limited(mode, world, CommandLimits(memory_mb=150))
    result = sandbox.run(Command(f"{hungry} {hungry} {hungry} wait", world.root, timeout_s=20))
    assert (result.killed_by, result.timed_out) == ("memory", False)
    assert "more than 150 MB of memory together" in result.output


def test_pages_that_processes_share_count_once(mode: Mode, world: World) -> None:
    code = (
        "import os, time\nx = bytearray(60_000_000)\npids = [os.fork() for _ in range(3)]\ntime.sleep(0.6)\n"
        "0 in pids and os._exit(0)\n[os.waitpid(p, 0) for p in pids]"
    )
    sandbox = limited(mode, world, CommandLimits(memory_mb=150))
    result = sandbox.run(Command(f"{world.words()['python']} '{code}'", world.root, timeout_s=20))
    assert (result.killed_by, result.exit_code) == ("", 0)


def test_standard_input_is_empty(mode: Mode, world: World) -> None:
    assert world.run(mode, "cat; echo $?").output == "0\n"


def test_a_command_ends_though_something_keeps_its_output_open(mode: Mode, world: World) -> None:
    assert world.run(mode, f"sleep {world.token} & echo done").output == "done\n"


@pytest.mark.parametrize("confining", ["bwrap", "landlock"])
def test_planning_leaves_the_project_as_it_is(confining: Mode, world: World) -> None:
    before = sorted((p, p.read_bytes()) for p in world.root.rglob("*") if p.is_file())
    for line in (
        "echo HACK > src/app.py",
        "rm -f src/app.py",
        "mv src s",
        "mkdir d",
        "ln -s x y",
        "echo HACK > .lopen/cache/other",
    ):
        assert world.run(confining, line, writable=False).exit_code != 0
    assert sorted((p, p.read_bytes()) for p in world.root.rglob("*") if p.is_file()) == before
    assert world.run(confining, "cat src/app.py && echo x > $HOME/x", writable=False).exit_code == 0


def test_tools_on_the_path_of_a_hidden_home_work(mode: Mode, world: World) -> None:
    assert world.run(mode, "tool").output == "tool\n"


def test_loopback_works_for_a_commands_own_servers(mode: Mode, world: World) -> None:
    code = (
        'import socket as s; l = s.create_server(("127.0.0.1", 0)); '
        'c = s.create_connection(l.getsockname()); a, _ = l.accept(); a.send(b"hi"); print(c.recv(2).decode())'
    )
    assert world.run(mode, f"{world.words()['python']} '{code}'").output == "hi\n"


def test_an_interruption_ends_the_command_and_goes_on(mode: Mode, world: World) -> None:
    def interrupt(_number: int, _frame: object) -> None:
        raise Stopped(ExitCode.INTERRUPTED)

    before = signal.signal(signal.SIGUSR1, interrupt)
    timer = threading.Timer(
        0.3, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
    )
    timer.start()
    try:
        with pytest.raises(Stopped):
            world.run(mode, f"setsid -f sleep {world.token}; sleep {world.token}", timeout_s=20)
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    assert processes_with(world.token) == []


def test_commands_of_several_threads_do_not_end_each_other(mode: Mode, world: World) -> None:
    outputs: dict[int, str] = {}

    def run(number: int) -> None:
        outputs[number] = world.run(mode, f"sleep 0.1; echo {number}").output

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {n: f"{n}\n" for n in range(4)}


def test_nothing_of_a_run_stays_behind(mode: Mode, world: World) -> None:
    world.run(mode, "true")
    descriptors = len(os.listdir("/proc/self/fd"))
    listed = sorted(os.listdir(world.root))
    others = zombies()  # of other tests in this process
    for _ in range(5):
        world.run(mode, "true")
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert sorted(os.listdir(world.root)) == listed
    assert [pid for pid in zombies() if pid not in others] == []


def zombies() -> list[int]:
    """Children of this process that ended and were not reaped."""
    ours = (p for p in descendants([os.getpid()]) if p.parent == os.getpid())
    return [p.pid for p in ours if Path(f"/proc/{p.pid}/cmdline").read_bytes() == b""]


@pytest.mark.parametrize("kind", ["bwrap", "landlock"])
def test_a_seal_and_credentials_outside_every_home_are_not_read(kind: Mode, world: World) -> None:
    require_sandbox(kind)
    outside = Path("/opt")
    if not os.access(outside, os.W_OK):
        pytest.skip(f"{outside} cannot be written")
    with tempfile.TemporaryDirectory(dir=outside) as folder:
        place = Path(folder)
        (place / "lopen").mkdir()
        for name in ("lopen/seal.key", "aws", "plain"):
            (place / name).write_text(f"in {name}\n")
        variables = {"XDG_DATA_HOME": folder, "AWS_SHARED_CREDENTIALS_FILE": f"{folder}/aws"}
        options = SandboxOptions(environ=dict(world.environ) | variables, readable=(place,))
        sandbox = KINDS[kind](world.root, options)

        result = sandbox.run(Command(f"cat {folder}/lopen/seal.key {folder}/aws {folder}/plain", world.root))

        assert "in plain" in result.output
        assert "in lopen" not in result.output
        assert "in aws" not in result.output
