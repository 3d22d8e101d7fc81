"""Conditions on items, by the engine's `where` and by the words of the photo search."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from setnet import SetIndex
from setnet.errors import SetNetError
from setnet.library import Conditions
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import json_bytes, mutated_bytes, mutated_json
from tests.fuzz.target import Function, attempt

ITEMS: list[dict[str, Any]] = [
    {"year": 2019, "place": "Rome", "size": 1.5},
    {"year": 2020, "place": "rome", "size": -0.0},
    {"year": 2**62, "place": "Rome/old", "size": 1e300},
    {"year": "2019", "place": "\U0010ffff", "size": 0},
    {"place": "", "size": 2019.0},
    {},
]
SOUND: list[dict[str, Any]] = [
    {"year": 2019, "place": {"prefix": "Ro"}},
    {"year": {">=": 2019, "<": 2021}, "size": {"in": [0, 1.5, "x"]}},
    {"place": ["Rome", "rome", ""], "size": {"!=": 0}},
]
WORDS = ["=", "!=", "<", "<=", ">", ">=", "in", "prefix", "year", "place", "size", "Rome", 2019, 1.5, [0, 1]]
TEXTS = [b"2019", b"2019-07", b"2019-07-14T18:30", b"3", b"2-5", b"4+", b"/photos/2019", b"~", b"~nobody/x"]


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that searches by changed conditions; the answer is compared with a simple model."""
    with SetIndex.create(folder / "index", 2) as index:
        ids = [str(i) for i in range(len(ITEMS))]
        index.add(ids, np.ones((len(ITEMS), 2), np.float32), [1] * len(ITEMS), ITEMS)

        def run(data: bytes) -> None:
            choices = Choices(data)
            if choices.once_in(3):
                _parse_words(choices)
            else:
                _search(choices, index)

        yield run


def _search(choices: Choices, index: SetIndex) -> None:
    try:
        where = json.loads(json_bytes(mutated_json(choices, choices.pick(SOUND), WORDS)))
    except (ValueError, RecursionError):
        return
    try:
        hits = index.search(np.ones((1, 2), np.float32), k=9, where=where, threads=1)
    except SetNetError:
        return
    expected = {str(i) for i, item in enumerate(ITEMS) if _holds(item, where or {})}
    assert {hit.id for hit in hits} == expected, f"{where!r} finds other items"


def _holds(item: dict[str, Any], where: dict[str, Any]) -> bool:
    return all(name in item and _fits(item[name], condition) for name, condition in where.items())


def _fits(value: Any, condition: Any) -> bool:
    if isinstance(condition, list):
        condition = {"in": condition}
    elif not isinstance(condition, dict):
        condition = {"=": condition}
    return all(_operator(value, operator, operand) for operator, operand in condition.items())


def _operator(value: Any, operator: str, operand: Any) -> bool:
    if operator == "in":
        return any(value == one and _alike(value, one) for one in operand)
    if operator == "prefix":
        return isinstance(value, str) and value.startswith(operand)
    if not _alike(value, operand):
        return False
    left, right = (v.encode() if isinstance(v, str) else v for v in (value, operand))
    return bool(
        {
            "=": left == right,
            "!=": left != right,
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
        }[operator]
    )


def _alike(value: Any, other: Any) -> bool:
    return isinstance(value, str) == isinstance(other, str)


def _parse_words(choices: Choices) -> None:
    def text() -> str | None:
        if choices.once_in(5):
            return None
        return mutated_bytes(choices, choices.pick(TEXTS), TEXTS).decode("utf-8", "surrogateescape")

    attempt(lambda: Conditions.parse(text(), text(), text(), text()).where())
