"""Printing: results to standard output, remarks to standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

# Control characters other than tabs and ends of lines, and those that turn the direction of writing.
_COMMANDS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def say(text: str) -> None:
    """Write a remark to standard error, whatever characters file names brought into it."""
    sys.stderr.write(_printable(text, sys.stderr) + "\n")


def say_some(title: str, lines: Sequence[str], most: int = 10) -> None:
    """Write the first of many remarks of one kind, and how many more there are."""
    for line in lines[:most]:
        say(f"{title} {line}")
    if len(lines) > most:
        say(f"... and {len(lines) - most:,} more: --json lists them")


def print_json(value: Any) -> None:
    """Print a value as JSON: pure ASCII, so that names of any bytes survive every pipe."""
    sys.stdout.write(json.dumps(value, indent=2, default=str) + "\n")


def print_either(facts: dict[str, Any], text: str, json: bool) -> None:
    """Print a result as JSON or as text."""
    if json:
        print_json(facts)
    else:
        print_text(text)


def print_text(text: str) -> None:
    """Print lines, whatever characters names brought into them."""
    sys.stdout.write(f"{_printable(text)}\n")


def console() -> Console:
    """Return a console that folds lines for people and never for programs."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 10_000)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str] = ()) -> None:
    """Print rows under their headings; columns named in `right` are aligned there."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    console().print(table)


def print_facts(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values side by side."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, value in rows:
        table.add_row(Text(name, style="bold"), Text(one_line(value)))
    console().print(table)


def _printable(text: str, stream: TextIO | None = None) -> str:
    """Return lines that are safe to print: what a terminal would obey or cannot show is spelled out."""
    encoding = (stream or sys.stdout).encoding or "utf-8"
    return _COMMANDS.sub(_spelled, text).encode(encoding, "backslashreplace").decode(encoding)


def one_line(value: object) -> str:
    """Return a value on one line."""
    return re.sub(r"[\t\n]", _spelled, _printable(str(value)))


def _spelled(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
