"""Writing the hooks into a project's `.claude/settings.json` and lopen's command beside it, and taking them out again.

Other entries there stay as they are. A file that cannot be read as settings is left alone, and said
(docs/reference/claude-code-hooks.md).
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lopen.claude_hooks.answers import EVENTS
from lopen.core.errors import LopenError
from lopen.core.files import replace_linked

# Events that are matched by tool
MATCHED = frozenset({"pre-tool-use", "post-tool-use", "post-tool-use-failure"})
TIMEOUT_S = 5
COMMAND = "circuit-status.md"  # for the person in a session
SHOWS = """\
---
description: Show lopen's circuit breakers and limits
allowed-tools: Bash({program} circuit status:*)
---
!`{program} circuit status`

Show the person this output as it is.
"""


def settings_path(project: Path) -> Path:
    """Where Claude Code reads a project's settings."""
    return project / ".claude" / "settings.json"


def install(project: Path, program: str = "") -> Path:
    """Add the hooks, replacing older ones of lopen's, and return the file."""
    path = settings_path(project)
    settings = _read(path)
    hooks = _without_ours(path, settings)
    program = program or program_here()
    _write_command(path.parent, program)
    for word, event in EVENTS.items():
        command = hook_command(word, program)
        entry: dict[str, Any] = {"matcher": "*"} if word in MATCHED else {}
        entry["hooks"] = [{"type": "command", "command": command, "timeout": TIMEOUT_S}]
        hooks[event] = [*hooks.get(event, []), entry]
    wanted = settings | {"hooks": hooks}
    if wanted != settings:
        _write(path, wanted)
    return path


def uninstall(project: Path) -> tuple[Path, bool]:
    """Take lopen's hooks out; a file that holds nothing else goes. Return the file, and whether anything was taken out."""
    path = settings_path(project)
    settings = _read(path)
    hooks = _without_ours(path, settings)
    _remove_command(path.parent)
    if hooks == settings.get("hooks", {}):
        return path, False
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    if hooks:
        rest["hooks"] = hooks
    if rest:
        _write(path, rest)
        return path, True
    try:
        path.unlink()
    except OSError as error:
        raise LopenError(f"{path} cannot be removed: {error.strerror or error}") from error
    with suppress(OSError):  # something else lies there
        path.parent.rmdir()
    return path, True


def _write_command(claude: Path, program: str) -> None:
    """A file of that name that somebody else wrote stays."""
    file = claude / "commands" / COMMAND
    if file.exists() and not _is_our_command(file):
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_linked(file, SHOWS.format(program=program).encode())
    except OSError as error:
        raise LopenError(f"{file} cannot be written: {error.strerror or error}") from error


def _remove_command(claude: Path) -> None:
    file = claude / "commands" / COMMAND
    if _is_our_command(file):
        file.unlink()
    with suppress(OSError):  # something else lies there
        file.parent.rmdir()


def _is_our_command(file: Path) -> bool:
    """The file is as lopen wrote it, with whichever program."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    found = re.search(r"(?m)^!`(.*) circuit status`$", text)
    return found is not None and text == SHOWS.format(program=found[1])


def program_here() -> str:
    """Return a shell's words for this lopen: its name where that is on PATH, else this Python's module."""
    return "lopen" if shutil.which("lopen") else f"{shlex.quote(sys.executable)} -m lopen"


def hook_command(word: str, program: str, python: str = sys.executable) -> str:
    """Return the shell's line for an event: this lopen's Python, isolated, where it is; else `program`."""
    python = shlex.quote(python)
    return f"[ -x {python} ] && exec {python} -I -m lopen hook {word}; {program} hook {word}"


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise LopenError(f"{path} cannot be read: {error}", hint="it was left as it is") from error
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LopenError(
            f"{path} is not valid JSON: {error}", hint="it was left as it is; fix it and try again"
        ) from error
    if not isinstance(settings, dict):
        raise LopenError(
            f"{path} does not contain a JSON object", hint="it was left as it is; fix it and try again"
        )
    return settings


def _without_ours(path: Path, settings: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The hooks table without lopen's commands; other commands beside them stay."""
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(entries, list) for entries in hooks.values()):
        raise LopenError(
            f"{path}: `hooks` is not a table of lists", hint="it was left as it is; fix it and try again"
        )
    cleaned = {event: [e for e in map(_entry_without_ours, entries) if e] for event, entries in hooks.items()}
    return {event: entries for event, entries in cleaned.items() if entries or not hooks[event]}


def _entry_without_ours(entry: Any) -> Any:
    commands = entry.get("hooks") if isinstance(entry, dict) else None
    if not isinstance(commands, list):
        return entry
    kept = [c for c in commands if not _is_ours(c)]
    if len(kept) == len(commands):
        return entry
    return entry | {"hooks": kept} if kept else None


def _is_ours(command: Any) -> bool:
    line = command.get("command") if isinstance(command, dict) else None
    if not isinstance(line, str):
        return False
    return any(
        line == f"lopen hook {word}" or line.endswith((f"/lopen hook {word}", f" lopen hook {word}"))
        for word in EVENTS
    )


def _write(path: Path, settings: Mapping[str, Any]) -> None:
    text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_linked(path, text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise LopenError(f"{path} cannot be written: {error.strerror or error}") from error
