"""The options of `run`, `resume`, `plan`, `build` and `spec` as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lopen.core.errors import WrongUsage


@dataclass(frozen=True)
class ResumeOptions:
    """The options of a command that resumes a session."""

    prompt: str = ""
    model: str = ""
    unattended: bool = False
    max_iterations: int | None = None
    max_cost: float | None = None  # USD; 0 means no limit
    quiet: bool = False
    no_color: bool = False
    sandbox: str = ""
    allow_network: bool = False
    record: bool | None = None

    def flags(self) -> dict[str, Any]:
        """Return the given options as settings; raise `WrongUsage` for an unknown sandbox."""
        if self.sandbox and self.sandbox not in ("auto", "bwrap", "landlock", "none"):
            raise WrongUsage(f"--sandbox {self.sandbox}: choose auto, bwrap, landlock or none")
        given: dict[str, Any] = {
            "workflow.unattended": True if self.unattended else None,
            "workflow.max_iterations": self.max_iterations,
            "budget.max_cost_usd": self.max_cost,
            "sandbox.mode": self.sandbox or None,
            "sandbox.network": True if self.allow_network else None,
            "recording.enabled": self.record,
        }
        return {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True)
class RunOptions(ResumeOptions):
    """The options of a command that may start a session."""

    new: bool = False
