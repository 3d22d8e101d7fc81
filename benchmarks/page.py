"""Sections of docs/performance.md that commands write: each between its own two comments."""

from __future__ import annotations

from pathlib import Path


def write_section(page: Path, name: str, text: str) -> None:
    """Replace the section ``name`` of a page, or add it at the end."""
    page.write_text(with_section(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")


def with_section(page: str, name: str, text: str) -> str:
    """Return a page with a section replaced, or added at its end.

    >>> page = with_section("# Title", "times", "## Times")
    >>> with_section(page, "times", "## New").splitlines()[2:]
    ['<!-- begin generated: times -->', '## New', '<!-- end generated: times -->']
    """
    begin, end = f"<!-- begin generated: {name} -->", f"<!-- end generated: {name} -->"
    block = f"{begin}\n{text.strip()}\n{end}"
    if begin not in page:
        return f"{page.rstrip()}\n\n{block}\n"
    return page[: page.index(begin)] + block + page[page.index(end) + len(end) :]
