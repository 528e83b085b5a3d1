"""A build with `--sandbox none` where nothing of Linux is there: no /proc, none of Python's Linux-only functions."""

from __future__ import annotations

import shutil
import subprocess
import sys

from tests.e2e.conftest import MakeProject
from tests.needs import require_sandbox
from tests.project import TIMEOUT_S, build, plan

# What Python has on Linux and not on macOS, by the documentation of its standard library
AS_ON_MACOS = """
import fcntl, os, resource, select, signal, socket, sys, time

LINUX_ONLY = {
    os: "O_PATH O_TMPFILE O_DIRECT copy_file_range eventfd fdatasync getrandom getxattr listxattr memfd_create pidfd_open "
    "posix_fadvise posix_fallocate posix_openpt preadv2 removexattr sched_getaffinity sched_setaffinity setns setxattr "
    "splice unshare P_PIDFD",
    resource: "prlimit",
    select: "epoll",
    signal: "pidfd_send_signal sigtimedwait sigwaitinfo",
    socket: "AF_NETLINK AF_PACKET AF_VSOCK MSG_NOSIGNAL SO_PEERCRED",
    time: "CLOCK_BOOTTIME",
    fcntl: "F_ADD_SEALS F_SETPIPE_SZ F_NOTIFY",
}
for module, names in LINUX_ONLY.items():
    for name in names.split():
        module.__dict__.pop(name, None)

import sysconfig, urllib.request  # both load files of the system that Python was built for

sysconfig.get_config_vars()
sys.platform = "darwin"
assert not os.path.exists("/proc/self")

from lopen.__main__ import main

sys.exit(main(sys.argv[1:]))
"""


def test_a_build_without_a_sandbox_needs_nothing_of_linux(make_project: MakeProject) -> None:
    require_sandbox("bwrap")  # hides /proc
    project = make_project([plan(), build("calc-t1")])
    project.specify()

    def without_linux(*arguments: str) -> str:
        hidden = [shutil.which("bwrap") or "bwrap", "--dev-bind", "/", "/", "--tmpfs", "/proc"]
        ran = subprocess.run(
            [*hidden, sys.executable, "-c", AS_ON_MACOS, *arguments],
            cwd=project.root,
            env=project.environment(),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    without_linux("approve", "calc", "--yes")
    assert "calc is complete" in without_linux("run", "calc", "--sandbox", "none")
    assert project.git("log", "-1", "--format=%s", "lopen/calc") == "feat(calc): complete Write it in core"
    assert "complete" in without_linux("status", "calc")
