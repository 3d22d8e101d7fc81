"""A page of results."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from setnet.evaluate import stress
from setnet.evaluate.plots import plots_of
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.report import write_section


def test_a_result_has_its_block_of_a_page_and_leaves_the_rest(
    tmp_path: Path, stress_run: Callable[..., Run]
) -> None:
    record = stress_run().record()
    page = tmp_path / "results.md"
    other = "<!-- begin generated: claim -->\nx\n<!-- end generated: claim -->\n"
    page.write_text(f"# Results\n\nwritten by hand\n\n{other}")
    for _ in range(2):
        write_section(
            page, "evaluate stress-lfw", "Stress test: lfw", record, stress.tables(record), "a command"
        )
    text = page.read_text()
    assert text.count("begin generated: evaluate stress-lfw") == 1
    assert "## Stress test: lfw" in text
    assert "written by hand" in text
    assert other in text
    places = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert len(places) == 2, "nDCG@10 and @30"
    for place in places:
        assert (tmp_path / place).stat().st_size > 5000
        assert (tmp_path / place).with_suffix(".svg").is_file()
    assert plots_of(Record("fit", {}, (Row("a"),), {}), tmp_path) == []
