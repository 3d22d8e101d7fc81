"""Printing: results to standard output, remarks and a progress bar to standard error."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO

from setnet.wording import pluralise

if TYPE_CHECKING:
    from rich.console import Console

    from setnet.library import IndexProgress

_MAX_LINES = 10  # of remarks of one kind
# Control characters other than tabs and ends of lines, and those that turn the direction of writing.
_COMMANDS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def say(text: str) -> None:
    """Write a remark to standard error, whatever characters file names brought into it."""
    sys.stderr.write(_printable(text, sys.stderr) + "\n")


def first_lines(title: str, lines: Iterable[str], hint: str = "--json lists them") -> list[str]:
    """Return the first of many remarks of one kind, and how many more there are; the hint says where."""
    every = [f"{title} {line}" for line in lines]
    more = len(every) - _MAX_LINES
    return every[:_MAX_LINES] + ([f"... and {more:,} more: {hint}"] if more > 0 else [])


def files_with_reasons(files: Iterable[tuple[str | Path, str]]) -> Iterator[str]:
    """Yield a line for each file that failed."""
    from setnet.library.paths import display_path

    return (f"{display_path(path)}: {reason}" for path, reason in files)


def print_json(value: Any) -> None:
    """Print a value as JSON: pure ASCII, so that names of any bytes survive every pipe."""
    sys.stdout.write(json.dumps(_plain(value), indent=2, default=str) + "\n")


def _plain(value: Any) -> Any:
    """Return a result as values that JSON can hold; it knows how, or is taken by its fields."""
    if hasattr(value, "to_dict"):
        return _plain(value.to_dict())
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, date):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return os.fspath(value) if isinstance(value, Path) else value


def count_photos(photos: int, sure: int) -> str:
    """Return in how many photos somebody is, surely and maybe.

    >>> count_photos(19, 17), count_photos(1, 1)
    ('17 photos, and maybe 2 more', '1 photo')
    """
    return pluralise(sure, "photo") + (f", and maybe {photos - sure:,} more" if photos > sure else "")


def print_text(text: str) -> None:
    """Print lines, whatever characters names brought into them."""
    sys.stdout.write(f"{_printable(text)}\n")


def console() -> Console:
    """Return a console that folds lines for people and never for programs."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 10_000)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str] = ()) -> None:
    """Print rows under their headings, if they have any; columns named in `right` are aligned there."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=any(columns))
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    console().print(table)


def _printable(text: str, stream: TextIO | None = None) -> str:
    """Return lines that are safe to print: what a terminal would obey or cannot show is spelled out."""
    encoding = (stream or sys.stdout).encoding or "utf-8"
    return _COMMANDS.sub(_escape, text).encode(encoding, "backslashreplace").decode(encoding)


def one_line(value: object) -> str:
    """Return a value on one line."""
    return re.sub(r"[\t\n]", _escape, _printable(str(value)))


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


class ProgressBar:
    """A bar with the time left; where there is no terminal, a plain line every `line_seconds`."""

    def __init__(self, silent: bool = False, line_seconds: float = 15.0) -> None:
        self._silent, self._line_seconds = silent, line_seconds
        self._bar: Any = None
        self._task: Any = None
        self._stage, self._first, self._began = "", 0, monotonic()
        self._said = monotonic()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the bar away, until something is shown again."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = self._task = None

    def show(self, stage: str, done: int, total: int | None = None, details: str = "") -> None:
        """Show how far a stage is, with details or, if there are none, the time left."""
        if self._silent:
            return
        if stage != self._stage:
            self._stage, self._first, self._began = stage, done, monotonic()
            if self._task is not None:  # a task cannot go back to an unknown total
                self._bar.remove_task(self._task)
                self._task = None
        details = details or self._time_left(done, total)
        if sys.stderr.isatty():
            self._draw(stage, done, total, details)
        elif monotonic() - self._said >= self._line_seconds:
            self._said = monotonic()
            of = "" if total is None else f" of {total:,}"
            say(f"{stage}: {done:,}{of} {details}".rstrip())

    def show_index(self, now: IndexProgress) -> None:
        """Show where an index run is."""
        self.show(now.stage, now.done, now.total, _index_details(now))

    def _time_left(self, done: int, total: int | None) -> str:
        if total is None or done <= self._first:
            return ""
        return _left((monotonic() - self._began) / (done - self._first) * (total - done))

    def _draw(self, stage: str, done: int, total: int | None, details: str) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[details]}"),
                console=Console(stderr=True),
                transient=True,
                refresh_per_second=4,
            )
            self._bar.start()
        if self._task is None:
            self._task = self._bar.add_task(stage, total=total, details="")
        self._bar.update(self._task, total=total, completed=done, details=details)


def _index_details(now: IndexProgress) -> str:
    if not now.seconds:  # it reads no photos
        return ""
    parts = [f"{now.rate:.1f} photos/s", f"{now.faces:,} faces"]
    if now.minutes:
        parts.append(f"{now.minutes:.1f} minutes of video")
    if now.failed:
        parts.append(f"{now.failed:,} failed")
    if now.seconds_left is not None:
        parts.append(_left(now.seconds_left))
    return ", ".join(parts)


def _left(seconds: float) -> str:
    """Return a time as people read it.

    >>> _left(75), _left(3675)
    ('1:15 left', '1:01:15 left')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} left" if hours else f"{minutes}:{rest:02} left"
