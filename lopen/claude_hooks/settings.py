"""The settings, prices and verify commands that a hook needs, from a copy that the ordinary ones are resolved into.

Loading the schema, the table of prices and the reader of documents takes longer than a hook may. So they are loaded once
and written into the person's cache folder, and again when a file or variable that they come from changes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import lopen
from lopen.core.errors import LopenError
from lopen.core.files import replace_file
from lopen.core.person import cache_folder, config_folder
from lopen.limits.budget import BudgetSpec
from lopen.models.messages import Usage

AGENT = "claude-code"
SECTIONS = {"budget", "circuit", "resources", "memory", "hooks"}
MOST_SPECIFICATIONS = 200
MOST_BYTES = 1_000_000  # of a specification
_NO_PROJECT = Path(os.devnull)  # in which no project's file lies
_VARIABLES = ("LOPEN_", "TOKEN_BUDGET_", "CIRCUIT_BREAKER_")

Tiers = Sequence[tuple[int, Sequence[float]]]


class HookSettings:
    """The settings in force for a project, by section, its verify commands, and the prices of the models used in it.

    `faults` names the faults in them. A file or a variable with a wrong setting does not hold.
    """

    def __init__(self, root: str, environ: Mapping[str, str] = os.environ) -> None:
        name = blake2b(root.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        self._path = Path(cache_folder(environ) or "/nonexistent", "hooks", f"{name}.json")
        self._key = _key(root, environ)
        copy = self._read()
        if copy is None:
            values, faults = _resolved(root, environ)
            commands = _verify_commands(root)
            copy = {"key": self._key, "values": values, "faults": faults, "prices": {}, "verify": commands}
            self._write(copy)
        self._copy = copy
        self.faults: tuple[str, ...] = tuple(copy["faults"])
        self.verify_commands: tuple[str, ...] = tuple(copy["verify"])  # of the project's specifications

    def __getitem__(self, section: str) -> dict[str, Any]:
        found: dict[str, Any] = self._copy["values"][section]
        return found

    def session_spec(self, session: str) -> BudgetSpec:
        """Return the budget of a Claude Code session."""
        budget = self["budget"]
        return BudgetSpec(
            f"session:{session}",
            "session",
            budget["session_tokens"] if budget["enabled"] else 0,
            agent=AGENT,
            alert_threshold=budget["warning_threshold"],
            pause_threshold=budget["pause_threshold"],
            enforcement=budget["enforcement"],
        )

    def cost_usd(self, model: str, usage: Usage, prompt: int) -> float | None:
        """Return the US dollars for tokens of a request with a prompt of this size; None without a known price."""
        prices: dict[str, Tiers | None] = self._copy["prices"]
        if model not in prices:
            from lopen.models.prices import price_tiers

            prices[model] = price_tiers(model)
            self._write(self._copy)
        rates = [rates for above, rates in prices[model] or () if prompt > above or not above]
        if not rates:
            return None
        return sum(rate * count for rate, count in zip(rates[-1], usage.counts, strict=True))

    def _read(self) -> dict[str, Any] | None:
        try:
            found = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and found.get("key") == self._key else None

    def _write(self, copy: Mapping[str, Any]) -> None:
        with suppress(OSError, LopenError):  # the next hook resolves them again
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(self._path, json.dumps(copy).encode(), durable=False)


def _key(root: str, environ: Mapping[str, str]) -> str:
    """Return a digest of everything that the settings and prices come from."""
    package = Path(lopen.__file__).parent
    files = [
        Path(config_folder(environ), "config.toml"),
        Path(root, ".lopen", "config.toml"),
        package.parent,  # another version of a library changes its folder
        Path(__file__),
        *sorted((package / "settings").glob("*.py")),
        *_specifications(root),
    ]
    told = [lopen.__version__, root, *(f"{path} {_stamp(path)}" for path in files)]
    told += sorted(f"{name}={value}" for name, value in environ.items() if name.startswith(_VARIABLES))
    return blake2b("\n".join(told).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _specifications(root: str) -> list[Path]:
    """Return the project's specifications; none where `specs` leads out of the project."""
    specs = Path(root, "specs")
    if not specs.resolve().is_relative_to(Path(root).resolve()):
        return []
    return sorted(specs.glob("*/SPECIFICATION.md"))[:MOST_SPECIFICATIONS]


def _verify_commands(root: str) -> list[str]:
    """Return the command lines of the project's verify commands."""
    from lopen.specification.spec import load_specification

    found: dict[str, None] = {}
    for path in _specifications(root):
        with suppress(LopenError, OSError):
            if path.is_file() and path.stat().st_size <= MOST_BYTES:
                lines = load_specification(path, module=path.parent.name).command_lines.values()
                found |= dict.fromkeys(line for line in lines if line)
    return list(found)


def _stamp(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _resolved(root: str, environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Load the ordinary settings; return the hooks' sections, and the faults of invalid values."""
    from lopen.settings.schema import Settings
    from lopen.settings.sources import load

    faults: list[str] = []
    project, variables = Path(root), dict(environ)
    while True:
        try:
            settings = load(project, environ=variables).settings
            break
        except LopenError as error:
            lines = [line[:300] for line in error.message.splitlines()]
        faults += (line for line in lines if line not in faults)
        wrong = {line.partition(":")[0] for line in lines} & variables.keys()
        if not wrong and project == _NO_PROJECT:
            settings = Settings()
            break
        variables = {name: value for name, value in variables.items() if name not in wrong}
        project = project if wrong else _NO_PROJECT
    values = settings.model_dump(mode="json", include=SECTIONS)
    values["budget"]["store"] = (
        "sqlite" if settings.budget.store == "sqlite" else "redis"
    )  # without its password
    return values, faults
