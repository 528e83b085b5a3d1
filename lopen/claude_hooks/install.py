"""Writing the hooks into a project's `.claude/settings.json` and lopen's commands beside it, and taking them out again.

Other entries there stay as they are; the file as it was is kept beside it until they are out again. A file that
cannot be read as settings is left alone, and said (docs/reference/claude-code-hooks.md).
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from lopen.claude_hooks.answers import EVENTS
from lopen.claude_hooks.settings import TASK_TYPES
from lopen.core.errors import LopenError
from lopen.core.files import replace_linked

# Events that are matched by tool
MATCHED = frozenset({"pre-tool-use", "post-tool-use", "post-tool-use-failure"})
TIMEOUT_S = 5
# Commands for the person in a session: name → description, and lopen's output or answer
COMMANDS = {
    "circuit-status": ("Show lopen's circuit breakers and limits", "circuit status"),
    "lopen-status": ("Show lopen's modules, budgets and circuits", "status"),
}
TYPED = f"""\
---
description: Begin a task of a type with its own token budget ({", ".join(TASK_TYPES)})
argument-hint: TYPE
---
The task that begins now has the type "$ARGUMENTS" for lopen's token budgets. Say so in one line and wait.
"""


def settings_path(project: Path) -> Path:
    """Where Claude Code reads a project's settings."""
    return project / ".claude" / "settings.json"


def install(project: Path, program: str = "") -> tuple[Path, Path | None]:
    """Add the hooks, replacing older ones of lopen's. Gives the file, and the backup where one was made."""
    path = settings_path(project)
    settings = _read(path)
    hooks = _without_ours(path, settings)
    program = program or program_here()
    _write_commands(path.parent, program)
    for word, event in EVENTS.items():
        command = hook_command(word, program)
        entry: dict[str, Any] = {"matcher": "*"} if word in MATCHED else {}
        entry["hooks"] = [{"type": "command", "command": command, "timeout": TIMEOUT_S}]
        hooks[event] = [*hooks.get(event, []), entry]
    wanted = settings | {"hooks": hooks}
    if wanted == settings:  # installed already
        return path, None
    rest = _rest(settings, _without_ours(path, settings))
    kept = not rest or any(
        _held(backup) == rest for backup in _backups(path)
    )  # nothing but an older one's hooks
    return path, _replace(path, wanted, backup=not kept)


def uninstall(project: Path) -> tuple[Path, bool, Path | None]:
    """Take lopen's hooks out, and leave the file as it was before them: none where they were all there was.

    Return the file, whether anything was taken out, and the backup of the installation if it differs from the file.
    Then somebody changed the file since.
    """
    path = settings_path(project)
    settings = _read(path)
    hooks = _without_ours(path, settings)
    _remove_commands(path.parent)
    if hooks == settings.get("hooks", {}):
        return path, False, None
    rest = _rest(settings, hooks)
    kept = list(_backups(path))
    before = next((backup for backup in reversed(kept) if _held(backup) == rest), None)
    try:
        if before is not None:
            replace_linked(path, before.read_bytes())  # to the byte
            before.unlink()
            kept.remove(before)
        elif rest:
            replace_linked(path, _text(rest))
        else:
            path.unlink()
            with suppress(OSError):  # something else lies there
                path.parent.rmdir()
    except OSError as error:
        raise LopenError(f"{path} cannot be changed: {error.strerror or error}") from error
    return path, True, kept[-1] if kept else None


def _texts(program: str) -> dict[str, str]:
    """The files of the client's commands, by name."""
    shown = {
        f"{name}.md": (
            f"---\ndescription: {what}\nallowed-tools: Bash({program} {line}:*)\n---\n"
            f"!`{program} {line}`\n\nShow the person this output as it is.\n"
        )
        for name, (what, line) in COMMANDS.items()
    }
    return {**shown, "lopen-type.md": TYPED}


def _write_commands(claude: Path, program: str) -> None:
    """A file of that name that somebody else wrote stays."""
    folder = claude / "commands"
    for name, text in _texts(program).items():
        file = folder / name
        if file.exists() and not _is_our_command(file):
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
            replace_linked(file, text.encode())
        except OSError as error:
            raise LopenError(f"{file} cannot be written: {error.strerror or error}") from error


def _remove_commands(claude: Path) -> None:
    folder = claude / "commands"
    for name in _texts(""):
        if _is_our_command(folder / name):
            (folder / name).unlink()
    with suppress(OSError):  # something else lies there
        folder.rmdir()


def _is_our_command(file: Path) -> bool:
    """The file is as lopen wrote it, with whichever program."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    found = re.search(r"(?m)^allowed-tools: Bash\((.*?) (?:circuit )?status:\*\)$", text)
    return text == _texts(found[1] if found else "")[file.name]


def _rest(settings: Mapping[str, Any], hooks: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with these hooks alone; without events, and without the table, where nothing is left."""
    left = {event: entries for event, entries in hooks.items() if entries}
    return {k: v for k, v in settings.items() if k != "hooks"} | ({"hooks": left} if left else {})


def _held(backup: Path) -> dict[str, Any] | None:
    """The settings that a backup holds, without an empty table of hooks; None where it holds none."""
    try:
        settings = _read(backup)
    except LopenError:
        return None
    return _rest(settings, settings.get("hooks", {}))


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


def _replace(path: Path, settings: Mapping[str, Any], *, backup: bool) -> Path | None:
    """Write the settings in one step, the earlier file kept as `settings.json.bak` (then `.bak2`, …) where asked."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = _backup(path) if backup else None
        replace_linked(path, _text(settings))
    except OSError as error:
        raise LopenError(f"{path} cannot be written: {error.strerror or error}") from error
    return kept


def _text(settings: Mapping[str, Any]) -> bytes:
    return (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def _backup(path: Path) -> Path | None:
    if not path.exists():
        return None
    kept = next(name for name in _backup_names(path) if not name.exists())
    shutil.copy2(path, kept)
    return kept


def _backups(path: Path) -> Iterator[Path]:
    """The backups that lie beside the file, the oldest first."""
    return takewhile(Path.exists, _backup_names(path))


def _backup_names(path: Path) -> Iterator[Path]:
    return (path.with_name(f"{path.name}.bak{number if number > 1 else ''}") for number in count(1))
