"""Records of experiments, kept row by row."""

from __future__ import annotations

import json
from pathlib import Path

from setnet.evaluate.record import Run, read_record


def test_a_run_that_goes_on_keeps_the_largest_memory_and_adds_up_times(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    Run("stress", {"seed": 0}, path).save()
    stored = json.loads(path.read_text())
    stored["machine"] |= {"peak_bytes": 10**15, "seconds": 1000.0, "cpu_seconds": 2000.0}
    path.write_text(json.dumps(stored))
    Run("stress", {"seed": 0}, path).save()
    machine = read_record(path).machine
    assert machine["peak_bytes"] == 10**15
    assert machine["seconds"] >= 1000
    assert machine["cpu_seconds"] >= 2000
