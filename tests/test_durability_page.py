"""Every promise of docs/durability.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "durability.md"


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE.read_text())
    assert len(named) > 30
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (TESTS / file).is_file() or f"def {test}(" not in (TESTS / file).read_text()
    ]
    assert missing == []


def test_every_promise_names_a_test() -> None:
    table = PAGE.read_text().partition("## Promises")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 15
    assert [row for row in rows if "::test_" not in row] == []
