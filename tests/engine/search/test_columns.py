"""Conditions on attributes mean the same in columns as in plain Python, also after merges."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from setnet.engine.columns import RowFilter, columns_of, merged_column
from setnet.engine.conditions import Condition

TEXTS = st.text("ab/é\U0010ffff", max_size=4)
NUMBERS = st.one_of(
    st.integers(-3, 3), st.sampled_from([0.5, -0.0, 2.0, 1e300, 2**62, 2**62 + 1.0, -(2**63)])
)
VALUES = st.one_of(TEXTS, NUMBERS)
ITEMS = st.lists(st.dictionaries(st.sampled_from(["x", "y"]), VALUES), min_size=1, max_size=12)
CONDITIONS = st.one_of(
    st.builds(Condition, st.just("x"), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), st.tuples(VALUES)),
    st.builds(Condition, st.just("x"), st.just("in"), st.lists(VALUES, max_size=3).map(tuple)),
    st.builds(Condition, st.just("x"), st.just("prefix"), st.tuples(TEXTS)),
)


def holds(value: Any, condition: Condition) -> bool:
    """Whether a value satisfies a condition, by Python's own comparisons of values of one kind."""
    alike = [v for v in condition.values if isinstance(v, str) == isinstance(value, str)]
    tests = {
        "=": lambda v: value == v, "in": lambda v: value == v, "!=": lambda v: value != v,
        "<": lambda v: value < v, "<=": lambda v: value <= v, ">": lambda v: value > v,
        ">=": lambda v: value >= v, "prefix": lambda v: value.startswith(v),
    }  # fmt: skip
    return any(tests[condition.operator](v) for v in alike)


@given(ITEMS, st.lists(CONDITIONS, min_size=1, max_size=2))
def test_conditions_mean_what_python_means(items: list[dict[str, Any]], conditions: list[Condition]) -> None:
    columns = columns_of(items, [str(i) for i in range(len(items))])
    none = np.zeros(0, bool), np.full(len(items), -1, np.int32)
    column = columns.get("x")
    rows = RowFilter([(len(items), [(column.values_where(conditions), column.numbers) if column else none])])
    found = rows[0].tolist()
    assert rows.of_rows(0, np.arange(len(items))).tolist() == found
    assert rows.share == np.mean(found)
    assert found == ["x" in item and all(holds(item["x"], c) for c in conditions) for item in items]


@given(ITEMS, ITEMS, st.randoms())
def test_merged_columns_hold_the_values_of_the_chosen_rows_alone(
    first: list[dict[str, Any]], second: list[dict[str, Any]], random: Any
) -> None:
    order = list(range(len(first) + len(second)))
    random.shuffle(order)
    order = order[: len(order) // 2 + 1]  # others are deleted
    parts = []
    for items, start in ((first, 0), (second, len(first))):
        mine = [(place, i - start) for place, i in enumerate(order) if 0 <= i - start < len(items)]
        places, rows = (np.array([pair[i] for pair in mine], np.int64) for i in (0, 1))
        parts.append((columns_of(items, [str(i) for i in range(len(items))]).get("x"), rows, places))
    merged = merged_column(parts, len(order))
    expected = [(first + second)[i].get("x") for i in order]
    found = [merged.value(n) if n >= 0 else None for n in merged.numbers.tolist()]
    assert [(type(v), v) for v in found] == [(type(v), v) for v in expected]
    assert sorted(set(merged.numbers.tolist()) - {-1}) == list(range(len(merged))), "a value of no row stays"
