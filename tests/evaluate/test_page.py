"""A page of results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from setnet.evaluate import stress
from setnet.evaluate.record import Run
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
    assert all(table.markdown() in text for table in stress.tables(record))
