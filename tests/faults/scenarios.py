"""The changes of an index that faults are injected into, and all scenarios by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from setnet import SetIndex
from setnet.errors import NotAnIndexError
from tests.faults.library_scenarios import LIBRARY_SCENARIOS
from tests.faults.scenario import Scenario, acknowledgement

__all__ = ["SCENARIOS"]

DIM = 4


@lru_cache(10_000)  # a simulation asks for the same ones at each look
def elements(seed: int, count: int = 2) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(size=(count, DIM)).astype(np.float32)
    drawn.setflags(write=False)
    return drawn


def make_index(root: Path) -> None:
    """Make seven segments of two items each, one of them deleted: the next add merges them."""
    with SetIndex.create(root / "index", DIM) as index:
        for n in range(7):
            rows = np.concatenate([elements(2 * n), elements(2 * n + 1)])
            index.add([f"i{2 * n}", f"i{2 * n + 1}"], rows, [2, 2], attributes=[{"n": n}, None])
        index.delete(["i13"])


def index_contents(root: Path) -> dict[str, Any]:
    """Return what an index holds, byte for byte; raise when a check finds damage."""
    with SetIndex.open(root / "index") as index:
        assert index.check().problems == []
        held = {
            item.id: (index.elements(item.id).tobytes(), tuple(sorted(item.attributes.items())))
            for item in index
        }
        index.compact()
        assert {item.id for item in index} == set(held)
    aside = root / "index" / "quarantine"
    assert not aside.exists() or not os.listdir(aside), "deleted means gone"
    return held


def on_index(change: Callable[[SetIndex], object]) -> Scenario:
    def changed(root: Path) -> None:
        with SetIndex.open(root / "index") as index:
            change(index)
            acknowledgement.given = True

    return Scenario(make_index, changed, index_contents, is_one_step=True)


def create(root: Path) -> None:
    try:
        SetIndex.create(root / "index", DIM).close()
    except NotAnIndexError:
        raise
    except ValueError:  # made by an attempt before this one
        SetIndex.open(root / "index").close()


def created(root: Path) -> dict[str, Any]:
    create(root)  # wherever it was cut short, it can be made or opened
    return index_contents(root)


def make_damaged(root: Path) -> None:
    make_index(root)
    (root / "index" / "catalog.sqlite").write_bytes(b"no database any more")


def repair(root: Path) -> None:
    SetIndex.repair(root / "index")


def repaired(root: Path) -> dict[str, Any]:
    repair(root)  # wherever it was cut short, it can be done again
    return index_contents(root)


def make_backup(root: Path) -> None:
    """Make an index and a backup of an earlier state of it."""
    make_index(root)
    with SetIndex.open(root / "index") as index:
        index.backup(root / "backup")
        index.add(["new"], elements(50), [2])
        index.delete(["i0"])


def back_up(root: Path) -> None:
    with SetIndex.open(root / "index", read_only=True) as index:
        index.backup(root / "backup")


def backup_contents(root: Path) -> list[str]:
    with SetIndex.open(root / "backup", read_only=True) as index:
        assert index.check().problems == []
        return [item.id for item in index]


SCENARIOS: dict[str, Scenario] = {
    "add": on_index(lambda index: index.add(["new"], elements(50), [2], attributes=[{"n": 50}])),
    "upsert": on_index(lambda index: index.add(["i2"], elements(51), [2])),
    "delete": on_index(lambda index: index.delete([i for i in ("i5", "i6") if i in index])),
    "compact": on_index(lambda index: index.compact()),
    "open": on_index(lambda index: None),
    "create": Scenario(lambda root: None, create, created),
    "repair": Scenario(make_damaged, repair, repaired),
    "backup": Scenario(make_backup, back_up, backup_contents),
} | LIBRARY_SCENARIOS
