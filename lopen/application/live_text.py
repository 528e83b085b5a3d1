"""The text that the model is writing now, for the servers of the project: a small file that is replaced a few times a second.

It lies in `.lopen/cache/` and holds the end of the present text or tool input, without secrets. Nothing is written
while no server runs. See docs/reference/server.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock, Timer

from lopen.application.servers import running_servers
from lopen.core.events import (
    ModelInput,
    ModelRetry,
    ModelText,
    Recorded,
    SessionFailed,
    SessionPaused,
    TurnEnded,
    TurnStarted,
)
from lopen.core.files import replace_file
from lopen.store.folder import CACHE

PERIOD_S = 0.25
STALE_S = 60
MOST_CHARACTERS = 16_384
PREFIX, SUFFIX = "live-", ".json"


@dataclass(frozen=True, slots=True)
class LiveText:
    """A part of an answer as far as it came. `tool`: whose input it is, "" for text. `start`: characters left out."""

    session: str
    turn: int
    part: int
    model: str
    tool: str
    start: int
    text: str


def live_texts(root: Path) -> list[Path]:
    """Return the files of the sessions whose model is writing; a killed run may have left an older one."""
    found = []
    with suppress(OSError):
        oldest = time.time() - STALE_S
        for path in (root / ".lopen" / CACHE).glob(f"{PREFIX}*{SUFFIX}"):
            if path.stat().st_mtime >= oldest:
                found.append(path)
    return found


def read_live_text(path: Path) -> LiveText | None:
    """Return what a file holds, None if it is gone or not of this form."""
    try:
        return LiveText(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


class LiveTextWriter:
    """A subscriber of a session's events that keeps its file while a server runs.

    A timer writes, so that the last words before a pause of the stream are seen too.
    """

    def __init__(self, root: Path, session: str, redact: Callable[[str], str]) -> None:
        self._root = root
        self._session = session
        self._redact = redact
        self._path = root / ".lopen" / CACHE / f"{PREFIX}{session}{SUFFIX}"
        self._observed = False  # a server runs
        self._lock = Lock()
        self._timer: Timer | None = None
        self._turn, self._part, self._start = 0, 0, 0
        self._model, self._tool, self._text = "", "", ""

    def __call__(self, recorded: Recorded) -> None:
        match recorded.event:
            case TurnStarted(turn, model, _):
                self._observed = bool(running_servers(self._root))
                self._turn, self._part, self._model = turn, 0, model
                self._tool, self._text, self._start = "", "", 0
            case ModelText(text) if self._observed:
                self._add("", text)
            case ModelInput(tool, text) if self._observed:
                self._add(tool, text)
            case TurnEnded() | ModelRetry() | SessionPaused() | SessionFailed() if self._observed:
                self.end()

    def _add(self, tool: str, text: str) -> None:
        with self._lock:
            if tool != self._tool:
                self._part, self._tool, self._text, self._start = self._part + 1, tool, "", 0
            self._text += text
            if self._timer is None:
                self._timer = Timer(PERIOD_S, self._write_held)
                self._timer.daemon = True
                self._timer.start()

    def _write_held(self) -> None:
        with self._lock:
            if self._timer is None:  # ended meanwhile
                return
            self._timer = None
            with suppress(OSError):  # a full disk stops the run elsewhere
                self._write()

    def end(self) -> None:
        """Remove the file: what was written is recorded, or the request is over."""
        with self._lock, suppress(OSError):
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        """Write whole words only: half a secret would not be recognised."""
        whole = self._text[: _last_blank(self._text)]
        if len(whole) > 2 * MOST_CHARACTERS:
            cut = _last_blank(whole[:-MOST_CHARACTERS])
            self._start += len(self._redact(self._text[:cut]))
            self._text, whole = self._text[cut:], whole[cut:]
        shown = LiveText(
            self._session,
            self._turn,
            self._part,
            self._model,
            self._tool,
            self._start,
            self._redact(whole),
        )
        self._path.parent.mkdir(exist_ok=True)
        replace_file(self._path, json.dumps(asdict(shown)).encode(), durable=False)


def _last_blank(text: str) -> int:
    """Return the place after the last blank or line break; 0 if there is none."""
    return max(text.rfind(" "), text.rfind("\n")) + 1
