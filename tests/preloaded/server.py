"""`lopen` with everything imported, forked for each run: importing the SDK costs seconds, a fork a few milliseconds.

A run is two processes. The attendant adopts all that the run leaves behind, and ends it when told to; below it
runs the command, watched at its system calls where asked for. Both talk to the caller over the run's own socket.

Run as a program (`python -m tests.preloaded.server DESCRIPTOR`); `tests.preloaded.runs` starts it.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel

import lopen
from lopen.__main__ import main as lopen_main
from lopen.store import sessions
from lopen.workflow.session import Approval, Session
from lopen.workflow.task_tree import Component, Task
from tests.preloaded import watched

LAZY = (
    "anthropic.types",
    "encodings.idna",
    "genai_prices.data",
    "genai_prices.decompose",
    "genai_prices.validation",
    "git",
    "glob",
    "h11",
    "httpcore2",
    "importlib.resources.readers",
    "markdown_it",
    "mdit_py_plugins.front_matter",
    "platformdirs",
    "rich.markup",
    "tomlkit",
    "transitions",
    "tree_sitter_python",
    "truststore",
    "typer._adapters",
    "typer._click.decorators",
    "xxhash",
    "yaml",
)
PATIENCE_S = 20.0  # for what a killed run left running


def preload() -> None:
    """Import all of lopen and what it imports where it is used."""
    for module in pkgutil.walk_packages(lopen.__path__, "lopen."):
        if not module.name.endswith(("__main__", "redis_store")):
            importlib.import_module(module.name)
    for name in LAZY:
        importlib.import_module(name)
    for model in _below_class(BaseModel):
        model.model_rebuild()  # the settings build theirs at the first use
    for kind in (Session, Approval, Component, Task):
        sessions._adapter(kind)
    gc.collect()
    gc.freeze()


def _below_class(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield from (model, *_below_class(model))


def serve(requests: socket.socket) -> None:
    """Fork an attendant for each request until the caller is gone."""
    signal.signal(signal.SIGCHLD, lambda *_: _reap())
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not data:
            return
        control, *streams = descriptors
        if os.fork() == 0:
            requests.close()
            attend(json.loads(data), socket.socket(fileno=control), streams)
        for descriptor in descriptors:
            os.close(descriptor)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def attend(request: Mapping[str, Any], control: socket.socket, streams: Sequence[int]) -> NoReturn:
    """Start the run; say how it ended; then see to what it left, as the request says."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    orphans = request.get("orphans", "left")
    if orphans != "left":
        watched.adopt_orphans()
    pid = os.fork()
    if pid == 0:
        command(request, control, streams)
    for stream in streams:
        os.close(stream)
    control.send(b"started %d" % pid)
    _, status = os.waitpid(pid, 0)
    control.send(b"ended %d" % os.waitstatus_to_exitcode(status))
    if orphans == "ended":
        end_all()
    if orphans != "left":
        _wait_for_all(time.monotonic() + PATIENCE_S)
    os._exit(0)


def end_all() -> None:
    """Kill every process below this one, until none is left."""
    while pids := _below(os.getpid()):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        _reap()


def _below(pid: int) -> list[int]:
    """The processes below `pid`, the dead ones that nobody has waited for left out."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
                found += [*([child] if state != "Z" else []), *_below(child)]
    except OSError:
        return found
    return found


def _wait_for_all(deadline: float) -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                if time.monotonic() > deadline:
                    end_all()
                time.sleep(0.005)
        except ChildProcessError:
            return


def command(request: Mapping[str, Any], control: socket.socket, streams: Sequence[int]) -> NoReturn:
    """Become `lopen` with these arguments, in a session of its own."""
    os.setsid()
    for standard, own in enumerate(streams):
        os.dup2(own, standard)
        os.close(own)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8", closefd=False)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = os.fdopen(  # type: ignore[misc]
        2, "w", encoding="utf-8", errors="backslashreplace", closefd=False
    )
    sys.argv = ["lopen", *request["arguments"]]
    os.environ.clear()
    os.environ.update(request["environment"])
    tempfile.tempdir = None  # TMPDIR may be another one here
    time.tzset()
    os.chdir(request["cwd"])
    arrange(request.get("arrange", ()))
    if request.get("watch"):
        listener = watched.watch()
        socket.send_fds(control, [b"watched"], [listener])
        os.close(listener)
    else:
        wake_often()
    control.close()
    os._exit(_ended(request["arguments"]))


def wake_often() -> None:
    """Interrupt every wait of this process twice a second, so that it sees a signal that came just before the wait.

    Python only notes a signal when it comes and handles it between two of its own instructions: a signal between the
    last of them and a system call that waits would be handled when the wait ends. A test sends its signal at what
    lopen prints before it waits, so it meets that moment.
    """
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)


def _ended(arguments: Sequence[str]) -> int:
    """Run lopen and do what Python does at its end, but for taking the interpreter apart; the exit code."""
    code = 1
    try:
        code = lopen_main(arguments)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:  # noqa: BLE001 - as Python itself ends one
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()  # a database that is only forgotten is closed, as at any process's end
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def arrange(calls: Sequence[Sequence[Any]]) -> None:
    """Call `module:function` with its arguments in the run's process: what a test needs done there."""
    for name, *arguments in calls:
        module, _, function = name.partition(":")
        act: Callable[..., object] = getattr(importlib.import_module(module), function)
        act(*arguments)


if __name__ == "__main__":
    preload()
    serve(socket.socket(fileno=int(sys.argv[1])))
