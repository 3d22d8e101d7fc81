"""Agreement between two people who answered about the same faces: Cohen's kappa."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from setnet.collect.annotation.decisions import Decision


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often two people gave the same answer, and Cohen's kappa: 0 as by chance, 1 always."""

    first: str
    second: str
    faces: int
    agreed: int
    kappa: float


def cohens_kappa(first: Sequence[str], second: Sequence[str]) -> float:
    """Return Cohen's kappa of two people's labels of the same things; 1 where both always say one thing.

    >>> round(cohens_kappa(["a", "a", "b", "b"], ["a", "a", "b", "a"]), 3)
    0.5
    """
    n = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    counts = Counter(first), Counter(second)
    by_chance = sum(counts[0][label] * counts[1][label] for label in counts[0]) / n**2
    return 1.0 if by_chance == 1.0 else (observed - by_chance) / (1.0 - by_chance)


def agreements(decisions: Iterable[Decision]) -> list[Agreement]:
    """Return the agreement of every two people who answered about the same faces."""
    by_face: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
    for decision in decisions:
        by_face[decision.photo, decision.face][decision.annotator] = str(decision.answer)
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for answers in by_face.values():
        for first, second in combinations(sorted(answers), 2):
            pairs[first, second].append((answers[first], answers[second]))
    return [
        Agreement(
            first, second, len(both), sum(a == b for a, b in both), cohens_kappa(*zip(*both, strict=True))
        )
        for (first, second), both in sorted(pairs.items())
    ]
