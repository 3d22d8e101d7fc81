"""Section 5.2: set retrieval in a world, with one or several examples per person (tables 4 to 6)."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from setnet.engine import SetIndex
from setnet.evaluate.methods import Method, Methods
from setnet.evaluate.queries import Prepare, QueryRunner, Search, build_index
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.representations import CODE_BITS, code_name, coded_elements, element_bytes
from setnet.evaluate.settings import WorldSettings, experiment
from setnet.evaluate.tables import CAPTION, FIRST, Column, Table, result_table
from setnet.evaluate.worlds import StoredWorld, World

TITLE = "Retrieval by set vectors (section 5.2)"

K = 30
# Rows that keep every element, and the bits per dimension of each.
KEPT = {"descriptor per element": 32} | {code_name(bits): bits for bits in CODE_BITS}
# Suffix of a row's name, numbers of examples it makes sense for, search options.
VARIANTS: tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...] = (
    ("", (1, 3), {}),
    (", query agg.", (1, 3), {"aggregate_query": True}),
    (", mean of scores", (3,), {"examples": "mean"}),
    (", max of scores", (3,), {"examples": "max"}),
)


@dataclass(frozen=True, kw_only=True)
class Settings(WorldSettings):
    """Section 5.2: set vectors alone, one and three examples per person, query aggregation."""


@experiment("retrieval")
def run(run: Run, settings: Settings) -> None:
    """Measure each method with and without query aggregation, and ways to use several examples."""
    split = settings.train_test_split()
    world = settings.make_world(split)
    methods = settings.fitted_methods(split)
    names = methods.chosen(settings.methods)
    run.total = len(names) * len(VARIANTS) + len(KEPT)
    todo = [name for name in names if not all(run.has(name + suffix) for suffix, _, _ in VARIANTS)]
    if not todo and all(run.has(name) for name in KEPT):
        return
    runner = QueryRunner(
        world, settings.queries // 2, settings.queries - settings.queries // 2, settings.repeats
    )
    run.note(world=world.name, items=world.size, faces=world.faces, queries=len(runner.queries))
    raw = methods.element_logistic()
    with tempfile.TemporaryDirectory(prefix="setnet-retrieval-") as made:
        run.say(f"making {world.size:,} items")
        stored = StoredWorld(world, Path(made) / "elements.f32")
        for number, name in enumerate(todo):
            run.say(f"{name}: fitting its score")
            method = methods.make(name)
            run.say(f"{name}: indexing {stored.size:,} items")
            path = Path(made) / f"i{number}"
            index = build_index(path, stored, method.aggregator, raw, method.logistic)
            for suffix, examples, options in VARIANTS:
                if not run.has(name + suffix):
                    run.say(name + suffix)
                    run.add(_row(name + suffix, method, index, runner, examples, options))
            index.close()
            shutil.rmtree(path)
        _kept_rows(run, stored, methods, runner, Path(made) / "codes")


def _kept_rows(run: Run, world: World, methods: Methods, runner: QueryRunner, path: Path) -> None:
    """Measure every element kept, in floats and in codes: the rivals of set vectors at their bytes."""
    for name, bits in KEPT.items():
        if run.has(name):
            continue
        run.say(name)
        logistic = methods.element_logistic(bits=bits)
        with build_index(path, world, None, logistic, change=coded_elements(bits)) as index:
            search = partial(index.search_many, k=K, mode="exact", threads=2)
            size = round(element_bytes(world.dim, bits) * world.faces / world.size)
            facts = {"bytes_per_item": size, "dim": world.dim, "note": "every element kept"}
            row = _measured_row(name, search, runner, (1, 3), facts | {"w": logistic.w, "b": logistic.b})
            run.add(replace(row, bound=bits == 32))
        shutil.rmtree(path)


def _row(
    name: str,
    method: Method,
    index: SetIndex,
    runner: QueryRunner,
    examples: Sequence[int],
    options: dict[str, Any],
) -> Row:
    search = partial(index.search_many, k=K, mode="set", threads=2, **options)
    facts = {
        "bytes_per_item": method.aggregator.bytes_per_item,
        "dim": method.aggregator.dim,
        "note": method.note,
        "w": method.logistic.w,
        "b": method.logistic.b,
    }
    return _measured_row(name, search, runner, examples, facts)


def _measured_row(
    name: str, search: Search, runner: QueryRunner, examples: Sequence[int], facts: dict[str, Any]
) -> Row:
    started = time.monotonic()
    values: dict[str, list[float]] = {}
    draws: dict[str, list[float]] = {}
    for each in examples:
        measured = runner.quality(search, _by_examples(each))
        values |= {f"{key} n{each}": numbers for key, numbers in measured.values.items()}
        draws |= {f"{key} n{each}": numbers for key, numbers in measured.draws.items()}
    return Row(name, values, facts | {"seconds": round(time.monotonic() - started, 1)}, draws=draws)


def _by_examples(each: int) -> Prepare:
    return lambda runner, repeat: list(runner.examples(repeat, each))


def tables(record: Record) -> list[Table]:
    """Return the table of all rows."""
    columns = [Column("bytes_per_item", "bytes", fact=True)]
    for each in (1, 3):
        columns += [Column(f"ndcg{depth} n{each}", f"nDCG@{depth}, {each} ex.") for depth in (10, 30)]
    columns += [
        Column("recall30 n1", "full matches in 30, 1 ex."),
        Column("first n1", "rank of first, 1 ex.", lower=True),
    ]
    return [result_table("Retrieval by set vectors", record.rows, columns, f"{CAPTION} {FIRST.format(30)}")]
