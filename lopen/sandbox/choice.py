"""Which sandbox a project's commands run in, and proving by trying that it holds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, assert_never

from lopen.base.errors import LopenError
from lopen.sandbox.bubblewrap import Bubblewrap
from lopen.sandbox.command import Command, CommandLimits, Sandbox, SandboxFailed
from lopen.sandbox.landlock import Landlock
from lopen.sandbox.unconfined import Unconfined

Mode = Literal["auto", "bwrap", "landlock", "none"]
Confining = Literal["bwrap", "landlock"]

_PROBE_S = 20.0


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Whether a sandbox does here what it promises, and what was seen. `recent`: with all of bubblewrap's options."""

    works: bool
    detail: str
    recent: bool = True


def choose(
    mode: Mode,
    root: Path,
    *,
    limits: CommandLimits = CommandLimits(),  # noqa: B008 - frozen
    session: str = "",
    environ: Mapping[str, str] = os.environ,
) -> Sandbox:
    """The sandbox for `mode`; `auto` takes the strongest that works here.

    Raises LopenError, naming the way out, where none works or the one asked for does not.
    """
    if mode == "none":
        return Unconfined(root, limits=limits, session=session, environ=environ)
    tried: list[str] = []
    wanted: tuple[Confining, ...] = ("bwrap", "landlock") if mode == "auto" else (mode,)
    for name in wanted:
        found = probe(name)
        if not found.works:
            tried.append(f"{name}: {found.detail}")
        elif name == "bwrap":
            return Bubblewrap(root, limits=limits, session=session, environ=environ, recent=found.recent)
        else:
            return Landlock(root, limits=limits, session=session, environ=environ)
    raise LopenError(
        f"no sandbox works here ({'; '.join(tried)})",
        hint="install bubblewrap, or run commands unprotected with --sandbox none",
    )


@lru_cache(maxsize=4)
def probe(mode: Mode) -> ProbeResult:
    """Try `mode` in a project made for it; asked once a process. "none" promises nothing and always works."""
    match mode:
        case "none":
            return ProbeResult(works=True, detail="commands run unprotected")
        case "auto":
            strong = probe("bwrap")
            return strong if strong.works else probe("landlock")
        case "landlock":
            return _tried(mode, recent=True)
        case "bwrap":
            found = _tried(mode, recent=True)
            older = found if found.works else _tried(mode, recent=False)
            return older if older.works else found
        case _:
            assert_never(mode)


def _tried(mode: Confining, *, recent: bool) -> ProbeResult:
    """Run a command that writes inside, outside and to a protected path, and look at what became of it."""
    with tempfile.TemporaryDirectory(prefix="lopen-probe-") as scratch:
        root, outside = Path(scratch, "project"), Path(scratch, "outside")
        root.mkdir()
        outside.mkdir()
        line = f"echo in > inside; echo out > {outside}/escaped; echo x > .git/escaped; true"
        try:
            sandbox = _made(mode, root, recent=recent)
            ended = sandbox.run(Command(line, root, timeout_s=_PROBE_S))
        except SandboxFailed as failed:
            return ProbeResult(works=False, detail=failed.message, recent=recent)
        if (outside / "escaped").exists():
            return ProbeResult(
                works=False, detail="a command could write outside of the project", recent=recent
            )
        if mode == "bwrap" and (root / ".git").exists():
            return ProbeResult(works=False, detail="a command could write to .git", recent=recent)
        if not (root / "inside").exists():
            return ProbeResult(
                works=False, detail=f"a command could not write: {ended.output}", recent=recent
            )
        return ProbeResult(works=True, detail="writing outside of the project was refused", recent=recent)


def _made(mode: Confining, root: Path, *, recent: bool) -> Sandbox:
    return Bubblewrap(root, recent=recent) if mode == "bwrap" else Landlock(root)
