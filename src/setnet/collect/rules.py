"""The paper's rules for labelling a face by its scores, and what is decided where the paper is silent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from setnet.errors import InvalidInputError, check_number

_RARE_RANK = 1 / 20


class Outcome(StrEnum):
    """What becomes of a face."""

    ACCEPTED = "accepted"
    ASK = "ask"
    UNKNOWN = "unknown"
    DROP_PHOTO = "drop photo"


@dataclass(frozen=True, slots=True)
class NamedScore:
    """A name and the score a face has for it."""

    name: str
    score: float


@dataclass(frozen=True, slots=True)
class FaceDecision:
    """What becomes of a face, as whom it is accepted, and by which rule."""

    outcome: Outcome
    name: str | None
    rule: str


@dataclass(frozen=True)
class AnnotationRules:
    """Thresholds of section 4, as settings; the defaults are the paper's.

    Attributes
    ----------
    accept_query
        A best name that the photo was searched for is accepted above this score; else a person is asked.
    accept_other
        Any other best name is accepted from this score on.
    unknown_below
        A face whose best name is another one with less than this is of an unknown person. From here up to
        `accept_other` the photo is dropped.
    best
        A person is asked when a name that was searched for is among so many best ones.
    ask_from
        In a short list of names a rank says little: of five names, every face has each among its five best.
        Where the rank would happen by chance in more than one of 20 faces, a person is asked only if the
        searched name has at least this score. The paper's list of 2,622 names never gets there.

    Notes
    -----
    The paper leaves three cases open. At exactly 0.8 another name is accepted (its text says "has to pass")
    and at exactly 0.4 the photo is dropped ("below 0.4" is unknown). A best name that was not searched for,
    with one that was among the five: accepted from 0.8 on, else a person is asked, whatever the score. Two
    faces of one photo with one name: `without_repeats`.
    """

    accept_query: float = 0.2
    accept_other: float = 0.8
    unknown_below: float = 0.4
    best: int = 5
    ask_from: float = 0.01

    def __post_init__(self) -> None:
        for name in ("accept_query", "accept_other", "unknown_below", "ask_from"):
            check_number(name, getattr(self, name), 0, 1)
        if self.unknown_below > self.accept_other:
            raise InvalidInputError(
                f"unknown_below {self.unknown_below} must not be above accept_other {self.accept_other}"
            )
        if not isinstance(self.best, int) or not 1 <= self.best <= 9:
            raise InvalidInputError(f"best must be a number from 1 to 9, not {self.best!r}")

    def decide(self, ranked: Sequence[NamedScore], query: Collection[str], names: int) -> FaceDecision:
        """Return what becomes of a face, whose photo was searched for the names of `query`.

        `ranked` are those of the list's so many `names` that have the highest scores, highest first.

        Examples
        --------
        >>> rules = AnnotationRules()
        >>> rules.decide([NamedScore("Ann", 0.3), NamedScore("Ben", 0.1)], {"Ann", "Cid"}, 2622).outcome
        <Outcome.ACCEPTED: 'accepted'>
        >>> rules.decide([NamedScore("Ben", 0.3), NamedScore("Ann", 0.1)], {"Ann", "Cid"}, 2622).outcome
        <Outcome.ASK: 'ask'>
        """
        if not ranked:
            return FaceDecision(Outcome.UNKNOWN, None, "no names to compare with")
        top = ranked[0]
        if top.name in query:
            if top.score > self.accept_query:
                return FaceDecision(Outcome.ACCEPTED, top.name, "query name on top")
            if self._is_worth_asking(0, top, names):
                return FaceDecision(Outcome.ASK, None, "query name on top, low score")
            return FaceDecision(Outcome.UNKNOWN, None, "query name on top by chance")
        if top.score >= self.accept_other:
            return FaceDecision(Outcome.ACCEPTED, top.name, "other name on top, high score")
        if any(
            each.name in query and self._is_worth_asking(rank, each, names)
            for rank, each in enumerate(ranked[: self.best])
        ):
            return FaceDecision(Outcome.ASK, None, "query name among the best")
        if top.score < self.unknown_below:
            return FaceDecision(Outcome.UNKNOWN, None, "other name on top, low score")
        return FaceDecision(Outcome.DROP_PHOTO, None, "other name on top, middle score")

    def _is_worth_asking(self, rank: int, found: NamedScore, names: int) -> bool:
        return (rank + 1) <= _RARE_RANK * names or found.score >= self.ask_from


def without_repeats(
    decisions: Sequence[FaceDecision], ranked: Sequence[Sequence[NamedScore]]
) -> list[FaceDecision]:
    """Return the decisions of a photo in which no name is accepted for two faces.

    The face with the highest score keeps the name; a person is asked about the others: they are look-alikes,
    or the same person in a mirror or on a screen, and no score tells which.
    """
    best: dict[str, int] = {}
    for number, decision in enumerate(decisions):
        name = decision.name
        if name is not None and (name not in best or ranked[number][0].score > ranked[best[name]][0].score):
            best[name] = number
    return [
        decision
        if decision.name is None or best[decision.name] == number
        else FaceDecision(Outcome.ASK, None, "name of another face of the photo")
        for number, decision in enumerate(decisions)
    ]
