"""`lopen` for a shell script of a test: the command runs in a fork of the preloaded process, on the script's streams.

Run as a program (`python -IS launcher.py ARGUMENT...`) with the descriptor of the request socket in `LAUNCHER_SOCKET`.
"""

from __future__ import annotations

import json
import os
import socket
import sys

VARIABLE = "LAUNCHER_SOCKET"


def main() -> int:
    """Have the command run; return its exit code."""
    environment = dict(os.environ)
    requests = socket.socket(fileno=int(environment.pop(VARIABLE)))
    request = {"cwd": os.getcwd(), "environment": environment, "arguments": sys.argv[1:]}
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        socket.send_fds(requests, [json.dumps(request).encode()], [theirs.fileno(), 0, 1, 2])
    while word := ours.recv(100).decode():
        if word.startswith("ended "):
            return max(0, int(word.removeprefix("ended ")))
    return 1


if __name__ == "__main__":
    sys.exit(main())
