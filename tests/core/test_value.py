from __future__ import annotations

import pytest

from lopen.core.quick_stdlib import Value


class Point(Value):
    x: int
    y: int = 2


def test_a_value_takes_its_fields_in_order_or_by_name() -> None:
    assert Point(1) == Point(x=1, y=2)
    assert Point(1).fields() == {"x": 1, "y": 2}
    assert repr(Point(1)) == "Point(x=1, y=2)"
    assert len({Point(1), Point(1), Point(2)}) == 2


def test_a_value_cannot_be_changed_only_replaced() -> None:
    point = Point(1)
    with pytest.raises(AttributeError):
        point.x = 5  # type: ignore[misc] # the point of the test
    assert point.replace(x=5) == Point(5)
    assert point.x == 1


@pytest.mark.parametrize("call", [((), {}), ((1,), {"z": 3}), ((1,), {"x": 1})])
def test_missing_unknown_and_doubled_fields_are_refused(
    call: tuple[tuple[int, ...], dict[str, int]],
) -> None:
    with pytest.raises(TypeError):
        Point(*call[0], **call[1])
