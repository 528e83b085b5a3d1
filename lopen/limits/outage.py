"""The one failure that a store has, whatever went wrong in it. A module of its own for the hook path."""

from __future__ import annotations

from lopen.errors import LopenError


class StoreUnreachable(LopenError):
    """The store did not answer, or not sensibly. The limits allow the work and catch up later."""
