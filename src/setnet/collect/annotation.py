"""The part of a person: faces that the rules leave open, and the answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from setnet.collect.faces import known_names
from setnet.collect.rules import NamedScore, Outcome
from setnet.collect.run import CollectRun
from setnet.durable import replace_file, storage_errors
from setnet.errors import InvalidInputError, StorageError

NAME, UNKNOWN, DROP = "name", "unknown", "drop photo"
_FILE = "answers.json"


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


def read_answers(run: CollectRun) -> list[tuple[Face, Answer]]:
    """Return the answers of a run in the order they were given."""
    path = run.path / _FILE
    with storage_errors(path):
        text = path.read_bytes() if path.is_file() else b"[]"
    try:
        return [
            ((row["photo"], row["face"], tuple(row["box"])), Answer(row["answer"], row["name"]))
            for row in json.loads(text)
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path}: no answers ({error!r}); put back a copy, or delete it") from error


@dataclass(frozen=True, slots=True)
class QueueState:
    """How many faces there are to answer, and how many are answered."""

    questions: int
    answered: int


class AnnotationQueue:
    """The faces of a run that a person has to name, and their answers; no face is asked twice.

    An answer is on the disk before it counts. One process at a time may answer: hold the run's lock
    ``answers``.
    """

    def __init__(self, run: CollectRun) -> None:
        if not run.manifest("labels").exists:
            raise InvalidInputError(
                f"the faces of {run.path} are not labelled yet: `setnet collect run {run.path}`"
            )
        self.run = run
        self.questions = questions(run)
        self.names = tuple(known_names(run))
        self.answers = read_answers(run)
        self._numbers = {each.face: number for number, each in enumerate(self.questions)}

    @property
    def _answered(self) -> set[int]:
        """Which questions are answered: their own way, or by an answer that drops their photo."""
        answers = {face: answer for face, answer in self.answers if face in self._numbers}
        dropped = {face[0] for face, answer in answers.items() if answer.kind == DROP}
        return {number for face, number in self._numbers.items() if face in answers or face[0] in dropped}

    def next(self) -> int | None:
        """Return the number of the next question; None when nothing is left."""
        answered = self._answered
        return next((n for n in range(len(self.questions)) if n not in answered), None)

    def answer(self, number: int, answer: Answer) -> None:
        """Store what a person says of a question."""
        if not 0 <= number < len(self.questions):
            raise InvalidInputError(f"no question {number}: there are {len(self.questions)}")
        if answer.kind == NAME and answer.name not in self.names:
            raise InvalidInputError(f"{answer.name!r} is not in the list of names")
        self._store([*self.answers, (self.questions[number].face, answer)])

    def undo(self) -> int | None:
        """Take back the latest answer; return the number of its question, which is asked again."""
        if not self.answers:
            return None
        face, _ = self.answers[-1]
        self._store(self.answers[:-1])
        return self._numbers.get(face)

    def state(self) -> QueueState:
        """Return how far the queue is."""
        return QueueState(len(self.questions), len(self._answered))

    def _store(self, answers: list[tuple[Face, Answer]]) -> None:
        rows = [
            {"photo": photo, "face": number, "box": box, "answer": answer.kind, "name": answer.name}
            for (photo, number, box), answer in answers
        ]
        path = self.run.path / _FILE
        with storage_errors(path, "the answer is not stored: "):
            replace_file(path, json.dumps(rows, indent=1).encode())
        self.answers = answers
