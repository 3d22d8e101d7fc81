"""Section 5.2: one set vector per item on the full data set, one and three examples per person."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from setnet.evaluate.experiments.query_runs import Asker, Prepare, build_index
from setnet.evaluate.methods.methods import Methods
from setnet.evaluate.report.record import Row, Run
from setnet.evaluate.worlds.stored_world import StoredWorld
from setnet.evaluate.worlds.worlds import World
from setnet.index import SetIndex

__all__ = ["EXAMPLES", "VARIANTS", "run_retrieval"]

EXAMPLES = (1, 3)
K = 30
# Suffix of a row's name, numbers of examples it makes sense for, search options.
VARIANTS: tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...] = (
    ("", (1, 3), {}),
    (", query agg.", (1, 3), {"aggregate_query": True}),
    (", mean of scores", (3,), {"examples": "mean"}),
    (", max of scores", (3,), {"examples": "max"}),
)


def run_retrieval(
    run: Run,
    world: World,
    methods: Methods,
    names: Sequence[str],
    asker: Asker,
    *,
    merging: bool = True,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Fill ``run`` with rows per method: with and without query aggregation, and ways to use examples.

    ``merging`` also measures mean and max of the scores of three examples.
    """
    variants = VARIANTS if merging else VARIANTS[:2]
    todo = [name for name in names if not all(run.has(name + suffix) for suffix, _, _ in variants)]
    if not todo:
        return
    run.note(world=world.name, items=world.size, faces=world.faces, queries=len(asker.queries))
    raw = methods.element_logistic()
    with tempfile.TemporaryDirectory(prefix="setnet-retrieval-") as made:
        say(f"making {world.size:,} items")
        stored = StoredWorld(world, Path(made) / "elements.f32")
        for number, name in enumerate(todo):
            say(f"{name}: fitting its score")
            method = methods.make(name)
            say(f"{name}: indexing {stored.size:,} items")
            path = Path(made) / f"i{number}"
            index = build_index(path, stored, method.aggregator, raw, method.logistic)
            facts = {
                "bytes_per_item": method.aggregator.bytes_per_item,
                "dim": method.aggregator.dim,
                "note": method.note,
                "w": method.logistic.w,
                "b": method.logistic.b,
            }
            for suffix, examples, options in variants:
                if not run.has(name + suffix):
                    say(name + suffix)
                    started = time.monotonic()
                    values = _values(index, asker, examples, options)
                    seconds = round(time.monotonic() - started, 1)
                    run.add(Row(name + suffix, values, {**facts, "seconds": seconds}))
            index.close()
            SetIndex.destroy(path)


def _values(
    index: SetIndex, asker: Asker, examples: Sequence[int], options: dict[str, Any]
) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for each in examples:
        ask = partial(index.search_many, k=K, mode="set", threads=2, **options)
        for key, numbers in asker.quality(ask, _by_examples(each)).items():
            values[f"{key} n{each}"] = numbers
    return values


def _by_examples(each: int) -> Prepare:
    return lambda asker, repeat: list(asker.people(repeat, each))
