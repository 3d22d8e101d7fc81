"""The questions of a run of `setnet collect`, shared by requests; answers are stored one at a time."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from setnet.collect import AnnotationQueue, Answer, CollectRun, Question, agreements
from setnet.web.server.problems import not_found


class AnnotationDesk:
    """An open queue of questions.

    Parameters
    ----------
    run
        The run's folder.
    annotator
        Who answers unless a request says otherwise.
    twice
        Share of the faces that are asked of a second person too.
    """

    def __init__(self, run: Path, annotator: str, twice: float = 0.0) -> None:
        self.annotator = annotator
        self._open = ExitStack()
        opened = CollectRun.open(run)
        self._open.enter_context(opened.locked("answers"))
        self._queue = AnnotationQueue(opened, twice)
        self._lock = threading.Lock()
        self.folders = [Path(folder) for folder in opened.settings.photos]

    def question(self, number: int) -> Question:
        """Return a question by its number."""
        if not 0 <= number < len(self._queue.questions):
            raise not_found(f"no question {number}")
        return self._queue.questions[number]

    def next(self, annotator: str) -> dict[str, Any]:
        """Return the next question for a person, and how far the queue is."""
        with self._lock:
            return self._answer(annotator, self._queue.next(annotator))

    def store(self, annotator: str, number: int, answer: Answer) -> dict[str, Any]:
        """Store an answer; return the next question."""
        self.question(number)
        with self._lock:
            self._queue.answer(annotator, number, answer)
            return self._answer(annotator, self._queue.next(annotator))

    def undo(self, annotator: str) -> dict[str, Any]:
        """Take back a person's latest answer; return its question, or the next if there was none."""
        with self._lock:
            taken = self._queue.undo(annotator)
            return self._answer(annotator, self._queue.next(annotator) if taken is None else taken)

    def _answer(self, annotator: str, number: int | None) -> dict[str, Any]:
        shown = None if number is None else {"id": number} | self._queue.questions[number].to_dict()
        return {"question": shown, "state": asdict(self._queue.state(annotator))}

    def answers(self) -> dict[str, Any]:
        """Return all answers with their times, and how those who answered agree."""
        with self._lock:
            log = self._queue.log
            return {
                "answers": [decision.to_dict() for decision in log.decisions],
                "agreement": [asdict(each) for each in agreements(log.current())],
            }

    def close(self) -> None:
        """Let other processes add answers."""
        self._open.close()
