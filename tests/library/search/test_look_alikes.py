"""One warning for all people of a query who look like one another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from setnet.library.search import look_alikes


def _warnings(**angles: float) -> list[str]:
    """Return the warnings for people who are directions in a plane, alike within 20 degrees."""
    people: Any = [SimpleNamespace(name=name) for name in angles]
    turns = np.radians(list(angles.values()))
    vectors = np.stack([np.cos(turns), np.sin(turns)], 1)
    matchers: Any = [SimpleNamespace(vector=vector, sure=np.cos(np.radians(20))) for vector in vectors]
    return look_alikes(people, matchers)


def test_everybody_alike_is_named_in_one_sentence() -> None:
    assert _warnings(Anna=0, Ben=90, Cleo=180) == []
    (pair,) = _warnings(Anna=0, Ben=10, Cleo=180)
    assert pair.startswith("Anna and Ben look like one and the same person:")
    (all_of_them,) = _warnings(Anna=0, Dora=180, Ben=15, Eve=185, Cleo=30)
    assert all_of_them.startswith(
        "Anna, Ben and Cleo look like one and the same person, and so do Dora and Eve:"
    )
