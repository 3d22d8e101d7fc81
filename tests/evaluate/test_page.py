"""One page of all results."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate.record import Run
from setnet.evaluate.report import write_markdown, write_page


def test_page_and_markdown_hold_everything(tmp_path: Path, stress_run: Callable[..., Run]) -> None:
    stress_run(tmp_path / "stress-lfw.json")
    page = write_page(tmp_path, tmp_path / "out" / "report.html").read_text()
    assert not re.findall(r'(?:src|href)="(?!data:)', page), "the page asks for other files"
    assert "Stress test (section 5.1): lfw" in page
    target = tmp_path / "results.md"
    target.write_text(
        "# Results\n\nwritten by hand\n\n<!-- begin generated: claim -->\nx\n<!-- end generated: claim -->\n"
    )
    for _ in range(2):
        write_markdown(tmp_path, target)
    text = target.read_text()
    assert text.count("begin generated: evaluate stress-lfw") == 1
    assert "written by hand" in text
    assert "begin generated: claim -->\nx\n" in text
    for place in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (tmp_path / place).is_file()
        assert (tmp_path / place).with_suffix(".svg").is_file()
    with pytest.raises(InvalidInputError, match="holds no results"):
        write_page(tmp_path / "results", tmp_path / "x.html")
