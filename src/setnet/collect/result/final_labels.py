"""The labels that count: what the rules accepted and what people answered, together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from setnet.collect.annotation.decisions import DROP, Decision, DecisionLog
from setnet.collect.annotation.queue import LOG
from setnet.collect.annotation.rules import Outcome
from setnet.collect.run.manifest import Row
from setnet.collect.run.run_folder import CollectRun
from setnet.errors import InvalidInputError, one_of

REFUSE, AS_UNKNOWN, DROP_PHOTO = "refuse", "unknown", "drop"
UNANSWERED = (REFUSE, AS_UNKNOWN, DROP_PHOTO)


def final_rows(run: CollectRun, unanswered: str = REFUSE) -> Iterator[Row]:
    """Yield the rows of labels with the names that count in ``name``, and ``by`` whom: a rule or a person.

    Parameters
    ----------
    unanswered
        What becomes of faces that nobody answered about: an error, ``unknown`` people as in the paper, or
        their photos are dropped.

    Notes
    -----
    A photo about which two people disagree is dropped: nothing says whom of them to believe.
    """
    if unanswered not in UNANSWERED:
        raise one_of("way with unanswered faces", unanswered, UNANSWERED)
    answers = _answers(run)
    for row in run.manifest("labels").rows():
        if not row["kept"]:
            yield row
            continue
        dropped = False
        for number, face in enumerate(row["faces"], 1):
            given = [d for d in answers.get((row["photo"], number), ()) if list(d.box) == face["box"]]
            reason = _settled(face, given, unanswered)
            if reason and not dropped:
                dropped = True
                row |= {"kept": False, "reason": reason, "detail": f"face {number}"}
        yield row


def _answers(run: CollectRun) -> Mapping[tuple[str, int], list[Decision]]:
    found: dict[tuple[str, int], list[Decision]] = defaultdict(list)
    for decision in DecisionLog(run.path / LOG).current():
        found[decision.photo, decision.face].append(decision)
    return found


def _settled(face: dict[str, Any], given: Sequence[Decision], unanswered: str) -> str | None:
    """Put the name that counts into a face; return why its photo is dropped, if it is."""
    face["by"] = "rule"
    if given and face["outcome"] == Outcome.ASK:
        answers = {decision.answer for decision in given}
        if any(answer.kind == DROP for answer in answers):
            return "dropped by a person"
        if len(answers) > 1:
            return "people disagree"
        face |= {"name": next(iter(answers)).name, "by": "person"}
    elif face["outcome"] == Outcome.ASK:
        if unanswered == REFUSE:
            raise InvalidInputError(
                "faces wait for a person: `setnet collect annotate RUN`, or say what becomes of them with "
                "--unanswered unknown or --unanswered drop"
            )
        face |= {"name": None, "by": "nobody"}
        return "unanswered" if unanswered == DROP_PHOTO else None
    return None
