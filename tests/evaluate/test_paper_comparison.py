"""Results beside the paper's tables."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from setnet.errors import SetNetError
from setnet.evaluate import EXPERIMENTS
from setnet.evaluate.record import Record, Run
from setnet.evaluate.report import compare_with_paper


def test_results_stand_beside_the_papers(stress_run: Callable[..., Run]) -> None:
    for experiment in {*EXPERIMENTS} - {"fit"}:
        for table in compare_with_paper(Record(experiment, {}, (), {})):
            assert all(len(row) == len(table.columns) for row in table.cells)
    stress = compare_with_paper(stress_run().record())
    assert len(stress) == 2
    assert {row[0] for row in stress[0].cells} == {"paper", "here"}
    assert "simulated" not in stress[0].title
    with pytest.raises(SetNetError, match="identify"):
        compare_with_paper(Record("fit", {}, (), {}))
