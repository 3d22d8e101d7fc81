"""The queue of faces for a person: what is asked next, what was answered, never the same twice."""

from __future__ import annotations

import zlib
from collections import defaultdict
from dataclasses import dataclass

from setnet.collect.annotation.decisions import DROP, NAME, Answer, Decision, DecisionLog
from setnet.collect.annotation.questions import Question, questions
from setnet.collect.names.portraits import known_names
from setnet.collect.run.run_folder import CollectRun
from setnet.errors import InvalidInputError

LOG = "answers.jsonl"
_LONGEST_ANNOTATOR = 100


@dataclass(frozen=True, slots=True)
class QueueState:
    """How many faces there are to answer, how many are answered, and how many by this person."""

    questions: int
    answered: int
    own: int


class AnnotationQueue:
    """The faces of a run that a person has to name, and their answers.

    Parameters
    ----------
    twice
        Share of the faces that are asked of a second person too, so that agreement can be measured.
    """

    def __init__(self, run: CollectRun, twice: float = 0.0) -> None:
        if not run.manifest("labels").exists:
            raise InvalidInputError(
                f"the faces of {run.path} are not labelled yet: `setnet collect run {run.path}`"
            )
        self.run, self.twice = run, twice
        self.questions = questions(run)
        self.names = tuple(known_names(run))
        self._by_face = {question.face: number for number, question in enumerate(self.questions)}
        self.log = DecisionLog(run.path / LOG)
        self._answers: dict[str, dict[str, Decision]] = defaultdict(dict)  # by face, then annotator
        self._dropped: set[str] = set()
        self._count()

    def _count(self) -> None:
        self._answers.clear()
        self._dropped.clear()
        for decision in self.log.current():
            self._note(decision)

    def _note(self, decision: Decision) -> None:
        number = self._by_face.get(f"{decision.photo}#{decision.face}")
        if number is None or self.questions[number].box != decision.box:
            return  # of faces that were found by other settings
        self._answers[self.questions[number].face][decision.annotator] = decision
        if decision.answer.kind == DROP:
            self._dropped.add(decision.photo)

    def next(self, annotator: str) -> int | None:
        """Return the number of the next question for a person; None when nothing is left."""
        checked_annotator(annotator)
        for number, question in enumerate(self.questions):
            if self._is_open(question, annotator):
                return number
        return None

    def _is_open(self, question: Question, annotator: str) -> bool:
        if question.photo in self._dropped:
            return False
        answers = self._answers.get(question.face)
        if not answers:
            return True
        return annotator not in answers and len(answers) == 1 and _share_of(question.face) < self.twice

    def answer(self, annotator: str, number: int, answer: Answer) -> Decision:
        """Store what a person says of a question."""
        checked_annotator(annotator)
        if not 0 <= number < len(self.questions):
            raise InvalidInputError(f"no question {number}: there are {len(self.questions)}")
        if answer.kind == NAME and answer.name not in self.names:
            raise InvalidInputError(f"{answer.name!r} is not in the list of names")
        question = self.questions[number]
        decision = self.log.add(annotator, question.photo, question.number, question.box, answer)
        self._note(decision)
        return decision

    def undo(self, annotator: str) -> int | None:
        """Take back a person's latest answer; return the number of its question, which is asked again."""
        taken = self.log.undo(checked_annotator(annotator))
        self._count()
        return None if taken is None else self._by_face.get(f"{taken.photo}#{taken.face}")

    def state(self, annotator: str = "") -> QueueState:
        """Return how far the queue is."""
        done = sum(q.photo in self._dropped or q.face in self._answers for q in self.questions)
        own = sum(annotator in answers for answers in self._answers.values())
        return QueueState(len(self.questions), done, own)

    def number_of(self, photo: str, face: int) -> int | None:
        """Return the number of the question about a face, if it is asked."""
        return self._by_face.get(f"{photo}#{face}")

    def has_answer(self, number: int, annotator: str) -> bool:
        """Return whether a person has answered a question."""
        return annotator in self._answers.get(self.questions[number].face, {})


def checked_annotator(name: str) -> str:
    """Return a person's name; raise for one that cannot be told apart in the file of answers."""
    if not name or len(name) > _LONGEST_ANNOTATOR or not name.isprintable():
        raise InvalidInputError(f"annotator {name!r}: 1 to {_LONGEST_ANNOTATOR} printable characters")
    return name


def _share_of(face: str) -> float:
    """Return a number from 0 to 1 that is always the same for a face."""
    return zlib.crc32(face.encode("utf-8", "surrogatepass")) / 2**32
