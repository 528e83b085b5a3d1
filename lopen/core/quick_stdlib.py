"""JSON and `datetime` by their C halves alone, and a quick `dataclass`, for the modules that a hook loads.

`json` loads `re`, `enum`, `functools` and `collections`, and `datetime` (until Python 3.12) a second implementation of
itself: together more time than a hook may take. A Python without these halves takes the whole modules. The standard
`dataclasses` costs a third of the time a hook may take (it imports `inspect`), and `typing` half of that. Standard
library only.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import UTC, datetime, timedelta
    from json import JSONEncoder as Encoder
    from json import dumps, loads
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda cls: cls

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


@dataclass_transform(frozen_default=True)
class Value:
    """A frozen record: fields by annotation, defaults, equality, a changed copy, and JSON-able fields.

    Two values of one class with equal fields are equal. Type checkers see an ordinary frozen dataclass.
    """

    names: ClassVar[tuple[str, ...]] = ()
    required: ClassVar[frozenset[str]] = frozenset()
    blank: ClassVar[Mapping[str, Any]] = {}  # every field with its default, in order

    def __init_subclass__(cls) -> None:
        cls.names = tuple(cls.__annotations__)
        cls.required = frozenset(name for name in cls.names if not hasattr(cls, name))
        cls.blank = {name: getattr(cls, name, None) for name in cls.names}

    if not TYPE_CHECKING:

        def __init__(self, *args, **kwargs):
            given = dict(zip(self.names, args, strict=False)) | kwargs
            if len(given) != len(args) + len(kwargs) or not self.required <= given.keys():
                raise TypeError(f"{type(self).__name__}({', '.join(self.names)}) got {args} {kwargs}")
            self.__dict__.update(self.blank)
            self._fill(given)

        def _fill(self, given):
            if not given.keys() <= self.blank.keys():
                raise TypeError(f"{type(self).__name__} has only {', '.join(self.names)}, not all of {given}")
            self.__dict__.update(given)

        def __setattr__(self, name, value):
            raise AttributeError(f"{type(self).__name__} is immutable")

        __delattr__ = __setattr__

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        if not TYPE_CHECKING:
            copy._fill(changes)
        return copy

    def fields(self) -> dict[str, Any]:
        """Every field by name, in order, defaults included."""
        return dict(self.__dict__)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.fields().values())))

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self.fields().items())
        return f"{type(self).__name__}({inner})"


__all__ = ["UTC", "Encoder", "Value", "datetime", "dumps", "loads", "timedelta"]
