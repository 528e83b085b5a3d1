"""The values of `lopen doctor`: the examined project and the result of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lopen.settings.schema import Settings
from lopen.settings.sources import Loaded

Status = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the report; `mend` says how to fix a problem."""

    check: str
    status: Status
    detail: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Examined:
    """The examined project. `loaded` is None if the configuration cannot be read."""

    root: Path
    loaded: Loaded | None
    environ: Mapping[str, str]
    online: bool = False

    @property
    def settings(self) -> Settings:
        """Return the effective settings, or the defaults."""
        return self.loaded.settings if self.loaded else Settings()


Check = Callable[[Examined], Iterator[CheckResult]]
