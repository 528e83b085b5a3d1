"""A sound specification for tests, and ways to change one thing about it."""

from __future__ import annotations

from pathlib import Path

from lopen.specification.spec import Specification, parse_specification

PATH = Path("specs/shop/SPECIFICATION.md")

SOUND = """\
---
name: shop
description: Sells things.
---

# Shop

## Overview

A small shop.

## Behaviour

### Rounding

Half up.

## Acceptance Criteria

- [ ] [SHOP-01] Prices are rounded half up
- [ ] Totals add up

## Dependencies

None.

## Skills & Hooks

- **verify-setup**: none
- **verify-build**: none
- **verify-tests**: `pytest -q`
- **verify-lint**: `ruff check .`
- **verify-commit**: none
"""


def changed(old: str, new: str, text: str = SOUND) -> str:
    """`text` with `old`, which must be in it, replaced."""
    assert old in text
    return text.replace(old, new)


def read(text: str, known_ids: dict[str, str] | None = None) -> Specification:
    """The specification that `text` is."""
    return parse_specification(text, module="shop", path=PATH, known_ids=known_ids or {})


def problems(text: str) -> list[str]:
    """Its problems as a person sees them, without the path."""
    return [str(p).removeprefix(f"{PATH}:") for p in read(text).problems]
