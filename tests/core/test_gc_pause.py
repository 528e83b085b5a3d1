"""Leaving garbage alone while much is made that stays."""

from __future__ import annotations

import gc

import pytest

from lopen.core.gc_pause import not_collecting


def test_garbage_is_left_alone_inside_and_looked_for_again_behind() -> None:
    with not_collecting():
        with not_collecting():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_failure_inside_changes_nothing_of_that() -> None:
    with pytest.raises(KeyError), not_collecting():
        raise KeyError
    assert gc.isenabled()


def test_where_it_is_switched_off_it_stays_so() -> None:
    gc.disable()
    try:
        with not_collecting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
