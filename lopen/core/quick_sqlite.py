"""SQLite by its C half alone, for the modules that a hook loads. Standard library only.

`sqlite3` loads `datetime`. Its C half, `_sqlite3`, loads `functools` for a cache of statements, and ten modules with
that, which takes longer than all that a call's hook asks of SQLite: it is given the C half of that cache instead.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
else:

    def _loaded():
        """Return `_sqlite3`; where `functools` is not loaded yet, a stand-in takes its place meanwhile."""
        if "functools" in sys.modules:
            import _sqlite3

            return _sqlite3
        from _functools import _lru_cache_wrapper

        functools = sys.modules["functools"] = type(sys)("functools")
        functools.lru_cache = lambda size: lambda function: _lru_cache_wrapper(function, size, False, tuple)
        try:
            import _sqlite3
        finally:
            del sys.modules["functools"]
        return _sqlite3

    try:
        sqlite3 = _loaded()
    except ImportError:  # another Python than CPython
        import sqlite3

__all__ = ["sqlite3"]
