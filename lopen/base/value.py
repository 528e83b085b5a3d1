"""`Value`: a frozen record for the modules that the hook path loads.

The standard `dataclasses` costs a third of the time a hook may take (it imports `inspect`), and `typing`
half of that. This base gives what the limits need: fields by annotation, defaults, equality, a changed
copy, and JSON-able fields. Type checkers see an ordinary frozen dataclass.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda cls: cls


@dataclass_transform(frozen_default=True)
class Value:
    """Immutable; two values of one class with equal fields are equal."""

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
