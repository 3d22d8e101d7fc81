"""Answers of people: appended to a file one by one, on the disk before they count, never overwritten."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from setnet.durable import append_durably, storage_errors
from setnet.errors import InvalidInputError, StorageError

NAME, UNKNOWN, DROP = "name", "unknown", "drop photo"
ANSWERS = (NAME, UNKNOWN, DROP)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person says of a face: a name, that it is nobody of the list, or that the photo is no good."""

    kind: str
    name: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in ANSWERS or (self.kind == NAME) != (self.name is not None):
            raise InvalidInputError(
                f"answer {self.kind!r} with name {self.name!r}: a name, 'unknown' or 'drop photo' is expected"
            )

    def __str__(self) -> str:
        return self.name if self.name is not None else self.kind


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer as it is stored; ``undone`` once it was taken back."""

    number: int
    time: str
    annotator: str
    photo: str
    face: int
    box: tuple[float, ...]
    answer: Answer
    undone: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as values that JSON can hold."""
        made = asdict(self)
        answer = made.pop("answer")
        return made | {"answer": answer["kind"], "name": answer["name"], "box": list(self.box)}


class DecisionLog:
    """All answers of a run in the order they were given, those taken back included.

    One process at a time may add to it: hold the run's lock ``answers``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.decisions: list[Decision] = []
        self._current: dict[tuple[str, str, int], Decision] = {}
        with storage_errors(path):
            lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
            if lines and not lines[-1].endswith(b"\n"):
                # Cut short by a kill or a full disk, so nobody was told that it is stored.
                os.truncate(path, sum(map(len, lines[:-1])))
                lines.pop()
        for number, line in enumerate(lines, 1):
            try:
                self._replay(json.loads(line))
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise StorageError(
                    f"{path}, line {number}: no answer ({error!r}); delete that line"
                ) from error

    def _replay(self, row: dict[str, Any]) -> None:
        if "undo" in row:
            self._take_back(row["undo"])
            return
        answer = Answer(row["answer"], row.get("name"))
        number, box = len(self.decisions), tuple(row["box"])
        made = Decision(number, row["time"], row["annotator"], row["photo"], row["face"], box, answer)
        self.decisions.append(made)
        self._current[made.annotator, made.photo, made.face] = made

    def _take_back(self, number: int) -> None:
        undone = self.decisions[number] = replace(self.decisions[number], undone=True)
        self._current.pop((undone.annotator, undone.photo, undone.face), None)

    def add(self, annotator: str, photo: str, face: int, box: tuple[float, ...], answer: Answer) -> Decision:
        """Store an answer in place of an earlier one of the same person; return it once it is on the disk."""
        row = {
            "time": _now(),
            "annotator": annotator,
            "photo": photo,
            "face": face,
            "box": list(box),
            "answer": answer.kind,
            "name": answer.name,
        }
        self._append(row)
        self._replay(row)
        return self.decisions[-1]

    def undo(self, annotator: str) -> Decision | None:
        """Take back the latest answer of a person that is not taken back; return it."""
        latest = next(
            (d for d in reversed(self.decisions) if d.annotator == annotator and not d.undone), None
        )
        if latest is not None:
            self._append({"time": _now(), "annotator": annotator, "undo": latest.number})
            self._take_back(latest.number)
        return latest

    def _append(self, row: dict[str, Any]) -> None:
        with storage_errors(self.path, "the answer is not stored: "):
            if not self.path.is_file():
                self.path.touch(mode=0o600)
            size = self.path.stat().st_size
            try:
                append_durably(self.path, json.dumps(row).encode() + b"\n")
            except OSError:
                os.truncate(self.path, size)  # a full disk keeps part of a line
                raise

    def current(self) -> Iterator[Decision]:
        """Yield the answers that stand."""
        yield from self._current.values()

    def of(self, photo: str, face: int) -> list[Decision]:
        """Return the answers that stand about a face, one per person."""
        return [d for (_, p, f), d in self._current.items() if p == photo and f == face]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
