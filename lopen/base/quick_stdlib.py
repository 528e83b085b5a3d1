"""JSON and `datetime` by their C halves alone, for the modules that a hook loads. Standard library only.

`json` loads `re`, `enum`, `functools` and `collections`, and `datetime` (until Python 3.12) a second implementation of
itself: together more time than a hook may take. A Python without these halves takes the whole modules.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import UTC, datetime, timedelta
    from json import JSONEncoder as Encoder
    from json import dumps, loads
else:
    try:
        from _datetime import datetime, timedelta, timezone

        UTC = timezone.utc
    except ImportError:
        from datetime import UTC, datetime, timedelta
    try:
        from _json import encode_basestring, encode_basestring_ascii, make_encoder, make_scanner
    except ImportError:
        from json import JSONEncoder as Encoder
        from json import dumps, loads
    else:
        _BLANKS = " \t\n\r"
        _NUMBERS = {"-Infinity": float("-inf"), "Infinity": float("inf"), "NaN": float("nan")}

        class _Reading:
            """The options of the reader: those of `json.loads`."""

            strict = True
            object_hook = None
            object_pairs_hook = None
            parse_float = float
            parse_int = int
            parse_constant = _NUMBERS.__getitem__

        def loads(text: str | bytes):
            """Return what a JSON text in UTF-8 says; ValueError where it is none."""
            if isinstance(text, bytes):
                text = text.decode("utf-8", "surrogatepass")
            try:
                value, end = make_scanner(_Reading)(text, len(text) - len(text.lstrip(_BLANKS)))
                if not text[end:].strip(_BLANKS):
                    return value
            except (StopIteration, SystemError):  # SystemError: the class of the failure is not loaded
                pass
            import json  # says what is wrong

            return json.loads(text)

        def _no_json(value: object):
            raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")

        class Encoder:
            """Writes values as `json.JSONEncoder` does with the same options."""

            def __init__(
                self, *, sort_keys=False, ensure_ascii=True, separators=(", ", ": "), default=_no_json
            ):
                written = encode_basestring_ascii if ensure_ascii else encode_basestring
                comma, colon = separators
                self._options = (default, written, None, colon, comma, sort_keys, False, True)

            def encode(self, value: object) -> str:
                """Return the text; ValueError for a value that holds itself, TypeError for one that is not JSON."""
                return "".join(make_encoder({}, *self._options)(value, 0))

        def dumps(value: object, **options: object) -> str:
            """Return the value as JSON text; the options are `Encoder`'s."""
            return Encoder(**options).encode(value)


__all__ = ["UTC", "Encoder", "datetime", "dumps", "loads", "timedelta"]
