"""`--json`: one JSON object a line, for programs (contract §3)."""

from __future__ import annotations

import re

from lopen.cli.rendering.stream import LineWriter
from lopen.events import Recorded

# Written as escapes, which mean the same in JSON: a terminal obeys C1 controls and reorders by bidirectional
# ones, some readers break lines at U+0085, U+2028 and U+2029, and half a surrogate pair cannot be encoded.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def json_line(recorded: Recorded) -> str:
    """The event's line, safe to show anywhere."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", recorded.to_json())


class JsonView(LineWriter):
    """Every event, streaming text included, as it happens."""

    def __call__(self, recorded: Recorded) -> None:
        self.write(json_line(recorded))
