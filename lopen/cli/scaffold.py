"""The files that `lopen init` lays out, as text. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from lopen.cli.detect import NAMES, Detected
from lopen.documents import scaffold as placeholder

GITIGNORE = "*\n!.gitignore\n!config.toml\n"

CONFIG = """\
# Settings of this project for lopen; may be committed. Every key and its value: lopen config show
# A project may tighten limits, not loosen them; endpoint, sandbox, hooks and notification are each person's own.

[budget]
# session_tokens = 400000        # less than your own; a person's limits: lopen config set --user
# token_budget_per_module = 0
# max_cost_usd = 0.0

[workflow]
# max_iterations = 100

[git]
# convention = "conventional"    # or "plain"
# isolation = "branch"           # or "worktree"
"""


def specification(module: str, detected: Detected) -> str:
    """An example of a specification that `lopen check` accepts, to be rewritten."""
    title = module.replace("-", " ").replace("_", " ").capitalize()
    return f"""\
---
name: {module}
description: {placeholder.DESCRIPTION.format(module=module)}
---

# {title}

## Overview

{placeholder.OVERVIEW.format(module=module)}

## Behaviour

{placeholder.BEHAVIOUR}

## Acceptance Criteria

{chr(10).join(f"- [ ] {criterion}" for criterion in placeholder.CRITERIA)}

## Dependencies

- None beyond the standard library.

## Skills & Hooks

{chr(10).join(_hooks(detected))}
"""


def _hooks(detected: Detected) -> Iterator[str]:
    for name in NAMES:
        command = detected.commands[name]
        yield f"- **{name}**: " + (f"`{command}`" if command else "none")
    yield "- **verify-commit**: none"


def pre_commit(detected: Detected) -> str:
    """A git hook that runs lint and tests before each commit."""
    lines = ["#!/bin/sh", "# Written by lopen init: a commit is made only when these pass."]
    for name in ("verify-lint", "verify-tests"):
        command = detected.commands[name]
        if command:
            lines += [f"echo {shlex.quote(f'{name}: {command}')}", f"( {command} ) || exit 1"]
    return "\n".join(lines) + "\n"
