"""Tables of results."""

from __future__ import annotations

from collections.abc import Callable

from setnet.evaluate.record import Row, Run
from setnet.evaluate.tables import Column, clear_best, result_table


def test_bold_needs_a_lead_larger_than_its_standard_error() -> None:
    near = [Row("a", {"x": [10.0, 12.0, 11.0]}), Row("b", {"x": [10.5, 11.0, 11.4]})]
    assert clear_best(near, "x") is None
    clear = [*near, Row("c", {"x": [13.0, 14.0, 13.5]})]
    assert clear_best(clear, "x") == 2
    assert clear_best(clear, "x", lower=True) is None
    assert clear_best([*clear, Row("bound", {"x": [99.0] * 3}, bound=True)], "x") == 2
    alike = [Row("a", {"x": [1.04, 1.04]}), Row("b", {"x": [1.03, 1.03]})]
    assert (clear_best(alike, "x", digits=2), clear_best(alike, "x", digits=1)) == (0, None)
    assert clear_best([Row("a", {"x": [1.0]}), Row("b", {"x": [5.0]})], "x") is None, (
        "one repeat has no error"
    )


def test_tables_in_markdown_escape_names(stress_run: Callable[..., Run]) -> None:
    table = result_table("T", stress_run().record().rows, [Column("ndcg10@2", "2")], "note")
    assert "| **88.5 ± 0.50** |" in table.markdown()
    assert r"a\|b" in table.markdown()
