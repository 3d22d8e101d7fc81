"""Questions for a person: the faces that the rules leave open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from setnet.collect.annotation.rules import NamedScore, Outcome
from setnet.collect.run.manifest import Row
from setnet.collect.run.run_folder import CollectRun


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
    def face(self) -> str:
        """The face as answers refer to it: ``photo.jpg#2``."""
        return face_id(self.photo, self.number)

    def to_dict(self) -> dict[str, Any]:
        """Return the question as values that JSON can hold."""
        return {
            "number": self.number,
            "box": list(self.box),
            "width": self.size[0],
            "height": self.size[1],
            "text": self.text,
            "query": list(self.query),
            "best": [{"name": each.name, "score": each.score} for each in self.best],
            "rule": self.rule,
        }


def face_id(photo: str, number: int) -> str:
    """Return how answers refer to a face."""
    return f"{photo}#{number}"


def questions_in(row: Row) -> Iterator[Question]:
    """Yield the questions about a photo's row of labels."""
    for number, face in enumerate(row["faces"], 1):
        if face["outcome"] == Outcome.ASK:
            yield Question(
                row["photo"],
                number,
                tuple(face["box"]),
                (row["width"], row["height"]),
                row["text"],
                tuple(row["query"]),
                tuple(NamedScore(name, score) for name, score in face["best"]),
                face["rule"],
            )


def questions(run: CollectRun) -> list[Question]:
    """Return all questions of a run, in the order of its photos."""
    return [each for row in run.manifest("labels").kept() for each in questions_in(row)]
