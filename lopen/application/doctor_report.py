"""What `lopen doctor` examines, and what a check of it says."""

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
    """One line of the report; `mend` says how, where something is to be mended."""

    check: str
    status: Status
    detail: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Examined:
    """What is examined. `loaded` is None where the configuration cannot be read."""

    root: Path
    loaded: Loaded | None
    environ: Mapping[str, str]
    online: bool = False

    @property
    def settings(self) -> Settings:
        """Settings in force, or the defaults."""
        return self.loaded.settings if self.loaded else Settings()


Check = Callable[[Examined], Iterator[CheckResult]]
