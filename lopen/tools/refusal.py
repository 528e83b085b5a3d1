"""What a tool says to the model when it will not, or cannot, do what was asked."""

from __future__ import annotations


class ToolRefused(Exception):
    """A message to the model, not to a person: `error` says what is wrong, `hint` what to do instead."""

    def __init__(self, error: str, hint: str = "") -> None:
        super().__init__(error)
        self.error = error
        self.hint = hint


class PathRefused(ToolRefused):
    """The path leaves the project, is protected, or names something that is no plain file."""
