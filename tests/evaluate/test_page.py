"""One page of all results."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate.record import Run
from setnet.evaluate.report import write_report


def test_a_page_holds_everything(tmp_path: Path, stress_run: Callable[..., Run]) -> None:
    stress_run(tmp_path / "stress-lfw.json")
    target = tmp_path / "results.md"
    target.write_text(
        "# Results\n\nwritten by hand\n\n<!-- begin generated: claim -->\nx\n<!-- end generated: claim -->\n"
    )
    for _ in range(2):
        write_report(tmp_path, target)
    text = target.read_text()
    assert text.count("begin generated: evaluate stress-lfw") == 1
    assert "Stress test (section 5.1): lfw" in text
    assert "written by hand" in text
    assert "begin generated: claim -->\nx\n" in text
    for place in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (tmp_path / place).is_file()
        assert (tmp_path / place).with_suffix(".svg").is_file()
    with pytest.raises(InvalidInputError, match="holds no results"):
        write_report(tmp_path / "results", tmp_path / "x.md")
