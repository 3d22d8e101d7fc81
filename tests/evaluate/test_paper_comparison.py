"""Results beside the paper's tables."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from setnet.errors import SetNetError
from setnet.evaluate.record import Record, Run
from setnet.evaluate.report import compare_with_paper, paper_table, paper_tables


def test_paper_tables_are_whole(stress_run: Callable[..., Run]) -> None:
    for key in paper_tables():
        table = paper_table(key)
        assert re.search(r"Table|Fig\.|Section", table.table), "which table of the paper is it?"
        assert all(len(row) == len(table.columns) for row in table.rows.values())
    stress = compare_with_paper(stress_run().record())
    assert len(stress) == 2
    assert {row[0] for row in stress[0].cells} == {"paper", "here"}
    assert "simulated" not in stress[0].title
    with pytest.raises(SetNetError, match="identify"):
        compare_with_paper(Record("photos", {}, (), {}))
