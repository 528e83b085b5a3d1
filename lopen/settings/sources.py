"""Where settings come from, in order: flags, environment, project file, user file, defaults.

A variable's text is read as the schema reads text; a list is JSON. No `.env` is read.

See docs/reference/configuration.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_origin

from pydantic import ValidationError

from lopen.core.errors import WrongUsage
from lopen.core.files import read_foreign, read_own, write_config
from lopen.core.person import config_folder, required
from lopen.settings import toml
from lopen.settings.keys import Key, Value, flatten, keys, nearest, nest, sections, shown
from lopen.settings.schema import Settings
from lopen.settings.trust import Unconfirmed, is_confirmed, objection

SourceName = Literal["flag", "environment", "project", "user", "default"]
Scope = Literal["project", "user"]

# Names without the prefix, for the keys most often set in scripts and containers.
SHORT_VARIABLES: Mapping[str, str] = {
    "TOKEN_BUDGET_ENABLED": "budget.enabled",
    "TOKEN_BUDGET_SESSION_DEFAULT": "budget.session_tokens",
    "TOKEN_BUDGET_TASK_DEFAULT": "budget.task_tokens",
    "TOKEN_BUDGET_ALERT_THRESHOLD": "budget.warning_threshold",
    "TOKEN_BUDGET_PAUSE_THRESHOLD": "budget.pause_threshold",
    "TOKEN_BUDGET_TTL": "budget.ttl_s",
    "CIRCUIT_BREAKER_ENABLED": "circuit.enabled",
    "CIRCUIT_BREAKER_MAX_ITERATIONS": "circuit.max_iterations.threshold",
    "CIRCUIT_BREAKER_DUPLICATE_THRESHOLD": "circuit.duplicate_call.threshold",
    "CIRCUIT_BREAKER_RAPID_FIRE_WINDOW": "circuit.rapid_fire.window",
    "CIRCUIT_BREAKER_RAPID_FIRE_THRESHOLD": "circuit.rapid_fire.threshold",
    "CIRCUIT_BREAKER_COOLDOWN": "circuit.rapid_fire.cooldown_base",
}
_PREFIX, _DELIMITER = "LOPEN_", "__"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value came from: which source, and the variable or `file:line` in it."""

    name: SourceName
    location: str = ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings in force, and the source of every key."""

    settings: Settings
    provenance: Mapping[str, Source]
    unconfirmed: tuple[Unconfirmed, ...] = ()


@dataclass(frozen=True, slots=True)
class _Setting:
    """One value as one source gives it."""

    name: str
    value: Value
    source: Source


DEFAULT = Source("default")


def user_file() -> Path:
    """The person's own configuration file (platform path; `XDG_CONFIG_HOME` counts)."""
    return required(config_folder()) / "config.toml"


def project_file(project: Path) -> Path:
    """The project's configuration file."""
    return project / ".lopen" / "config.toml"


def load(
    project: Path, *, flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None
) -> Loaded:
    """The settings in force for `project`. `flags` are by key; None stands for a flag that was not given.

    Raises `WrongUsage` with a line for every wrong key and value, naming where it stands.
    """
    problems: list[str] = []
    own_path = user_file()
    own = _checked(_from_file(read_own(own_path), own_path, "user"), problems, strict=True)
    theirs_path = project_file(project)
    theirs = _checked(_from_file(read_foreign(theirs_path), theirs_path, "project"), problems, strict=True)
    problems += _objections(theirs, {s.name: s.value for s in own})
    surroundings = os.environ if environ is None else environ
    outside = _checked(_from_environment(surroundings, problems), problems)
    given = _checked(_from_flags(flags or {}), problems)
    if problems:
        raise WrongUsage("\n".join(dict.fromkeys(problems)), hint=_hint(own_path))
    return _assemble(project, [*own, *theirs, *outside, *given])


def set_value(scope: Scope, project: Path, key: str, text: str) -> Path:
    """Set `key` in the project's or the person's file, the rest of it untouched; returns that file.

    `text` is read as the environment's values are (lists as JSON). The file as it would be is checked first.
    """
    problems: list[str] = []
    path = user_file() if scope == "user" else project_file(project)
    asked = _Setting(key, text, Source("flag", "config set"))
    for setting in _checked([_parsed(asked)], problems):
        before = (read_own(path) if scope == "user" else read_foreign(path)) or ""
        toml.parse(before, str(path))
        after = toml.with_value(before, key, setting.value)
        own = read_own(user_file()) if scope == "project" else after
        mine = _checked(_from_file(own, user_file(), "user"), problems, strict=True)
        if scope == "project":
            theirs = _checked(_from_file(after, path, "project"), problems, strict=True)
            named = (
                replace(s, source=replace(s.source, location="config set")) if s.name == key else s
                for s in theirs
            )
            problems += _objections(named, {s.name: s.value for s in mine})
            mine = [*mine, *theirs]
        if not problems:
            _assemble(project, mine)
            write_config(path, after, mode=0o600)
    if problems:
        raise WrongUsage("\n".join(dict.fromkeys(problems)), hint=_hint(user_file()))
    return path


def unset_value(scope: Scope, project: Path, key: str) -> Path | None:
    """Remove `key` from the project's or the person's file, the rest of it untouched; None if it is not set there."""
    path = user_file() if scope == "user" else project_file(project)
    before = (read_own(path) if scope == "user" else read_foreign(path)) or ""
    toml.parse(before, str(path))
    after = toml.without(before, key)
    if after == before:
        return None
    write_config(path, after, mode=0o600)
    return path


def _assemble(project: Path, layers: Iterable[_Setting]) -> Loaded:
    """Later layers win. What only holds between values is checked here, on the whole."""
    layers = list(layers)
    chosen = {s.name: s for s in layers}
    try:
        settings = Settings.model_validate(nest({s.name: s.value for s in chosen.values()}))
    except ValidationError as error:
        raise WrongUsage("\n".join(_between(error, chosen)), hint="change one of them") from error
    return Loaded(
        settings,
        MappingProxyType({name: chosen[name].source if name in chosen else DEFAULT for name in keys()}),
        tuple(_unconfirmed(project, chosen.values(), [s for s in layers if s.source.name == "user"])),
    )


def _unconfirmed(project: Path, chosen: Iterable[_Setting], own: Iterable[_Setting]) -> Iterator[Unconfirmed]:
    """Models in force that only the repository names: not the default, not the person's own choice."""
    mine = {s.name: s.value for s in own}
    for setting in chosen:
        key = keys()[setting.name]
        if setting.source.name != "project" or key.trust.rule != "confirm":
            continue
        if setting.value in (key.default, mine.get(key.name)):
            continue
        if not is_confirmed(project, setting.name, setting.value):
            yield Unconfirmed(setting.name, setting.value)


def _between(error: ValidationError, chosen: Mapping[str, _Setting]) -> Iterator[str]:
    for found in error.errors(include_url=False):
        section = ".".join(str(part) for part in found["loc"])
        message = found["msg"].removeprefix("Value error, ")
        places = [
            f"{name} from {s.source.location or s.source.name}"
            for name, s in chosen.items()
            if name.startswith(f"{section}.") and name.rsplit(".", 1)[-1] in message
        ]
        yield f"{section}: {message}" + (f" ({'; '.join(places)})" if places else "")


def _checked(given: Iterable[_Setting], problems: list[str], *, strict: bool = False) -> list[_Setting]:
    """The settings that are right, as the schema reads them; a line in `problems` for each other one.

    Files have types, so there `"5"` is not a number (`strict`); variables and flags have only text.
    """
    right = []
    for setting in given:
        key = keys().get(setting.name)
        if key is None:
            problems.append(_unknown(setting))
            continue
        try:
            value = key.adapter.validate_python(setting.value, strict=strict)
        except ValidationError:
            problems.append(_wrong(setting, key))
            continue
        right.append(_Setting(setting.name, value, setting.source))
    return right


def _unknown(setting: _Setting) -> str:
    where, value = setting.source.location, shown(setting.name, setting.value)
    name = setting.name if setting.name.isprintable() and setting.name.isascii() else repr(setting.name)
    if setting.name in sections():
        inside = ", ".join(k.removeprefix(f"{name}.") for k in keys() if k.startswith(f"{name}."))
        return f"{where}: {name} = {value}: {name} is a section; allowed in it: {inside}"
    near = nearest(setting.name)
    meant = f"; the nearest is {near} ({keys()[near].allowed()})" if near else ""
    return f"{where}: {name} = {value}: there is no such setting{meant}"


def _wrong(setting: _Setting, key: Key) -> str:
    value = shown(key.name, setting.value)
    return f"{setting.source.location}: {key.name} = {value} is not allowed; allowed is {key.allowed()}"


def _objections(theirs: Iterable[_Setting], own: Mapping[str, Value]) -> Iterator[str]:
    for setting in theirs:
        key = keys()[setting.name]
        why = objection(key, setting.value, own.get(key.name, key.default))
        if why:
            yield f"{setting.source.location}: {key.name} = {shown(key.name, setting.value)} {why}"


def _hint(own_path: Path) -> str:
    return (
        f"see every setting: lopen config show; your own file: {own_path} (lopen config set --user KEY VALUE)"
    )


def _from_file(text: str | None, path: Path, name: SourceName) -> Iterator[_Setting]:
    if text is None:
        return
    tables = toml.parse(text, str(path))
    lines = toml.lines(text) if tables else {}
    for key, value in flatten(tables):
        line = lines.get(key) or lines.get(key.rpartition(".")[0])  # in an inline table
        yield _Setting(key, value, Source(name, f"{path}:{line}" if line else str(path)))


def _from_flags(flags: Mapping[str, Any]) -> Iterator[_Setting]:
    for key, value in flags.items():
        if value is not None:
            yield _Setting(key, value, Source("flag", "command line"))


def _from_environment(environ: Mapping[str, str], problems: list[str]) -> Iterator[_Setting]:
    """Yield the settings of environment variables. Short names give way to lopen's own where both are set."""
    found = {key: name for name, key in SHORT_VARIABLES.items() if name in environ}
    for name in environ:
        if name.startswith(_PREFIX) and _DELIMITER in name:
            found[name.removeprefix(_PREFIX).lower().replace(_DELIMITER, ".")] = name
    for key, name in found.items():
        setting = _Setting(key, environ[name], Source("environment", name))
        if key in keys():
            yield _parsed(setting)
        else:
            problems.append(_unknown(setting))


def _parsed(setting: _Setting) -> _Setting:
    """Return the setting with the text of a list or table read as JSON; text that is not JSON stays for the check to refuse."""
    key = keys().get(setting.name)
    if key is None or get_origin(key.field.annotation) not in (list, dict):
        return setting
    try:
        return replace(setting, value=json.loads(setting.value))
    except (ValueError, RecursionError):
        return setting
