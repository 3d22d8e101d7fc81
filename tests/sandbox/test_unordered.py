"""Results come as they are ready, and never too far ahead of their reader."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from setnet.sandbox import unordered_map
from setnet.sandbox.pool import _AHEAD


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_each_item_has_one_result(threads: int) -> None:
    assert sorted(unordered_map(lambda n: n * n, range(100), threads)) == [n * n for n in range(100)]


def test_a_slow_item_does_not_hold_up_the_others() -> None:
    last = threading.Event()

    def wait_for_last(number: int) -> int:
        if number == 0:
            assert last.wait(60)
        if number == 9:
            last.set()
        return number

    assert set(unordered_map(wait_for_last, range(10), threads=2)) == set(range(10))


def test_items_are_not_taken_far_ahead() -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield number

    results = unordered_map(abs, items(), threads=2)
    next(results)
    assert taken <= 2 * _AHEAD + 1


def test_an_error_reaches_the_reader_and_ends_the_work() -> None:
    done = []

    def fail(number: int) -> int:
        if number == 3:
            raise LookupError("three")
        done.append(number)
        return number

    with pytest.raises(LookupError, match="three"):
        list(unordered_map(fail, range(1000), threads=1))
    assert len(done) < 100


def test_stopping_does_not_wait_for_what_is_under_way() -> None:
    free = threading.Event()
    try:
        assert list(unordered_map(lambda _: free.wait(), range(3), 2, should_stop=lambda: True)) == []
    finally:
        free.set()
