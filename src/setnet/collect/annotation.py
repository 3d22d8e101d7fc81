"""The part of a person: faces that the rules leave open, and the answers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from setnet.collect.faces import known_names
from setnet.collect.rules import NamedScore, Outcome
from setnet.collect.run import CollectRun
from setnet.durable import append_durably, storage_errors
from setnet.errors import InvalidInputError, StorageError

NAME, UNKNOWN, DROP = "name", "unknown", "drop photo"
_LOG = "answers.jsonl"


@dataclass(frozen=True, slots=True)
class Question:
    """A face whose name a person decides.

    Attributes
    ----------
    photo, number
        The photo, and which face of it, counted from 1.
    box
        Where the face is.
    size
        Width and height of the photo.
    text, query
        The photo's text, and the names it was searched for.
    best
        The names with the highest scores, highest first.
    rule
        Why it is asked.
    """

    photo: str
    number: int
    box: tuple[float, ...]
    size: tuple[int, int]
    text: str
    query: tuple[str, ...]
    best: tuple[NamedScore, ...]
    rule: str

    @property
    def face(self) -> Face:
        """What an answer is about."""
        return self.photo, self.number, self.box

    def to_dict(self) -> dict[str, Any]:
        """Return the question as values that JSON can hold."""
        made = asdict(self)
        width, height = made.pop("size")
        del made["photo"]
        return made | {"width": width, "height": height}


def questions(run: CollectRun) -> list[Question]:
    """Return all questions of a run, in the order of its photos."""
    return [
        Question(
            row["photo"],
            number,
            tuple(face["box"]),
            (row["width"], row["height"]),
            row["text"],
            tuple(row["query"]),
            tuple(NamedScore(name, score) for name, score in face["best"]),
            face["rule"],
        )
        for row in run.manifest("labels").kept_rows()
        for number, face in enumerate(row["faces"], 1)
        if face["outcome"] == Outcome.ASK
    ]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person says of a face: a name, that it is nobody of the list, or that the photo is no good."""

    kind: str
    name: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in (NAME, UNKNOWN, DROP) or (self.kind == NAME) != (self.name is not None):
            raise InvalidInputError(
                f"answer {self.kind!r} with name {self.name!r}: a name, 'unknown' or 'drop photo' is expected"
            )

    def __str__(self) -> str:
        return self.name or self.kind


Face = tuple[str, int, tuple[float, ...]]  # photo, number and box, as other settings find other faces


class AnswerLog:
    """The answers of a run in the order they were given.

    Answers, and that one was taken back, are appended to a file line by line, and are on the disk before they
    count. One process at a time may add to it: hold the run's lock ``answers``.
    """

    def __init__(self, run: CollectRun) -> None:
        self.path = run.path / _LOG
        self.standing: list[tuple[Face, Answer]] = []
        with storage_errors(self.path):
            lines = self.path.read_bytes().splitlines(keepends=True) if self.path.is_file() else []
            if lines and not lines[-1].endswith(b"\n"):
                # Cut short by a kill or a full disk, so nobody was told that it is stored.
                os.truncate(self.path, sum(map(len, lines[:-1])))
                lines.pop()
        for number, line in enumerate(lines, 1):
            try:
                self._replay(json.loads(line))
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise StorageError(
                    f"{self.path}, line {number}: no answer ({error!r}); delete that line"
                ) from error

    def _replay(self, row: Mapping[str, Any]) -> None:
        if "undo" in row:
            self.standing.pop()
            return
        face = row["photo"], row["face"], tuple(row["box"])
        self.standing.append((face, Answer(row["answer"], row.get("name"))))

    def current(self) -> dict[Face, Answer]:
        """Return the latest answer about each face that was not taken back."""
        return dict(self.standing)

    def add(self, face: Face, answer: Answer) -> None:
        """Store an answer."""
        photo, number, box = face
        self._append({"photo": photo, "face": number, "box": box, "answer": answer.kind, "name": answer.name})

    def undo(self) -> Face | None:
        """Take back the latest answer that is not taken back; return what it was about."""
        if not self.standing:
            return None
        face, _ = self.standing[-1]
        self._append({"undo": True})
        return face

    def _append(self, row: dict[str, Any]) -> None:
        row = {"time": datetime.now(UTC).isoformat(timespec="seconds")} | row
        with storage_errors(self.path, "the answer is not stored: "):
            if not self.path.is_file():
                self.path.touch(mode=0o600)
            size = self.path.stat().st_size
            try:
                append_durably(self.path, json.dumps(row).encode() + b"\n")
            except OSError:
                os.truncate(self.path, size)  # a full disk keeps part of a line
                raise
        self._replay(row)


@dataclass(frozen=True, slots=True)
class QueueState:
    """How many faces there are to answer, and how many are answered."""

    questions: int
    answered: int


class AnnotationQueue:
    """The faces of a run that a person has to name, and their answers; no face is asked twice."""

    def __init__(self, run: CollectRun) -> None:
        if not run.manifest("labels").exists:
            raise InvalidInputError(
                f"the faces of {run.path} are not labelled yet: `setnet collect run {run.path}`"
            )
        self.run = run
        self.questions = questions(run)
        self.names = tuple(known_names(run))
        self.log = AnswerLog(run)
        self._numbers = {each.face: number for number, each in enumerate(self.questions)}
        self._count()

    def _count(self) -> None:
        """Note which questions are answered: their own way, or by an answer that drops their photo."""
        answers = {face: answer for face, answer in self.log.current().items() if face in self._numbers}
        dropped = {face[0] for face, answer in answers.items() if answer.kind == DROP}
        self._answered = {
            number for face, number in self._numbers.items() if face in answers or face[0] in dropped
        }

    def next(self) -> int | None:
        """Return the number of the next question; None when nothing is left."""
        return next((n for n in range(len(self.questions)) if n not in self._answered), None)

    def answer(self, number: int, answer: Answer) -> None:
        """Store what a person says of a question."""
        if not 0 <= number < len(self.questions):
            raise InvalidInputError(f"no question {number}: there are {len(self.questions)}")
        if answer.kind == NAME and answer.name not in self.names:
            raise InvalidInputError(f"{answer.name!r} is not in the list of names")
        self.log.add(self.questions[number].face, answer)
        self._count()

    def undo(self) -> int | None:
        """Take back the latest answer; return the number of its question, which is asked again."""
        face = self.log.undo()
        self._count()
        return None if face is None else self._numbers.get(face)

    def state(self) -> QueueState:
        """Return how far the queue is."""
        return QueueState(len(self.questions), len(self._answered))
