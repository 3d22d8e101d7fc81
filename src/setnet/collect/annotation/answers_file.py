"""Answers as files: scripted ones are taken in, given ones are written out, in one format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setnet.collect.annotation.decisions import ANSWERS, NAME, Answer, DecisionLog
from setnet.collect.annotation.queue import LOG, AnnotationQueue
from setnet.collect.run.run_folder import CollectRun
from setnet.durable import replace_file, storage_errors
from setnet.errors import InvalidInputError

_COLUMNS = ("time", "annotator", "photo", "face", "box", "answer", "name", "undone")


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of a file of answers: how many were stored, known already, or about no face that is asked."""

    stored: int
    known: int
    not_asked: int


def import_answers(queue: AnnotationQueue, path: Path, annotator: str) -> Imported:
    """Store the answers of a file for the faces that are asked; those a person gave already are left out.

    A row has ``photo``, ``face`` (counted from 1), ``answer`` (``name``, ``unknown`` or ``drop photo``) and
    ``name``; ``annotator`` where it is not the one given. A photo is found by its path or the end of it.
    """
    by_end = _Ends(queue)
    counts = {"stored": 0, "known": 0, "not_asked": 0}
    for line, row in _rows(path):
        try:
            if row.get("undone") in (True, "True"):
                continue
            photo, face = by_end.photo(str(row["photo"])), int(row["face"])
            who = str(row.get("annotator") or annotator)
            kind = str(row["answer"])
            answer = Answer(kind, row["name"]) if kind == NAME else Answer(kind)
        except (KeyError, ValueError, TypeError) as error:
            raise InvalidInputError(
                f"{path}, {line}: no answer ({error}); expected photo, face, name, "
                f"and answer ({', '.join(ANSWERS)})"
            ) from error
        number = None if photo is None else queue.number_of(photo, face)
        if number is None:
            counts["not_asked"] += 1
        elif queue.has_answer(number, who):
            counts["known"] += 1
        else:
            queue.answer(who, number, answer)
            counts["stored"] += 1
    return Imported(**counts)


class _Ends:
    """Finds the photo that a path, or the end of one, means."""

    def __init__(self, queue: AnnotationQueue) -> None:
        self._photos = {question.photo for question in queue.questions}
        self._by_name: dict[str, list[str]] = {}
        for photo in self._photos:
            self._by_name.setdefault(Path(photo).name, []).append(photo)

    def photo(self, path: str) -> str | None:
        if path in self._photos:
            return path
        found = [p for p in self._by_name.get(Path(path).name, ()) if p.endswith("/" + path)]
        if len(found) > 1:
            raise ValueError(f"{path} could be {found[0]} or {found[1]}")
        return found[0] if found else None


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix.lower() == ".csv":
            for number, row in enumerate(csv.DictReader(io.StringIO(text)), 2):
                yield f"line {number}", row
        else:
            for number, line in enumerate(text.splitlines(), 1):
                if line.strip():
                    yield f"line {number}", json.loads(line)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidInputError(f"{path}: cannot be read as a file of answers ({error})") from error


def export_answers(run: CollectRun, path: Path) -> int:
    """Write all answers of a run, those taken back marked, as ``.csv`` or JSON lines; return how many."""
    decisions = DecisionLog(run.path / LOG).decisions
    rows = [{name: made[name] for name in _COLUMNS} for made in (d.to_dict() for d in decisions)]
    if path.suffix.lower() == ".csv":
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, _COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
        text = buffer.getvalue()
    else:
        text = "".join(json.dumps(row) + "\n" for row in rows)
    with storage_errors(path, "cannot write "):
        replace_file(path, text.encode("utf-8", "surrogateescape"))
    return len(rows)
