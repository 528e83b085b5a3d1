"""Tables of test cases, as TOML files beside the tests that run them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def table(test_file: str, name: str) -> dict[str, Any]:
    """Return the tables in the file `name` in the folder of `test_file`."""
    return tomllib.loads((Path(test_file).parent / name).read_text("utf-8"))
