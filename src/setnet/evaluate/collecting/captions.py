"""Captions as press agencies write them, with what goes wrong: names missing, added, misspelt, shortened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_TEMPLATES = (
    "{people} at the opening of the exhibition",
    "{people} attend the ceremony on Tuesday",
    "File photo: {people} during talks in the capital",
    "{people} pose for photographers before the premiere. Photo: staff",
    "From left: {people}",
    "Archive, 12 May 2003. {people} (seen here in an earlier photo) met again",
)
_LISTS = "{people}; press conference"


@dataclass(frozen=True)
class CaptionNoise:
    """How often captions are wrong.

    Attributes
    ----------
    missing
        Share of people in a photo whom its caption does not name.
    added
        Share of captions that name somebody who is not in the photo.
    misspelt
        Share of names with a letter lost, doubled or exchanged.
    shortened
        Share of names with initials, or without middle names.
    turned
        Share of captions that list people as "Last, First; Last, First".
    """

    missing: float = 0.15
    added: float = 0.1
    misspelt: float = 0.05
    shortened: float = 0.15
    turned: float = 0.1


def caption(
    people: Sequence[str], others: Sequence[str], noise: CaptionNoise, rng: np.random.Generator
) -> str:
    """Return a caption of a photo.

    Parameters
    ----------
    people
        Who is in the photo, from left to right.
    others
        People of whom one may be named although not in it.
    """
    named = [name for name in people if rng.random() >= noise.missing]
    if rng.random() < noise.added and others:
        named.insert(int(rng.integers(len(named) + 1)), others[int(rng.integers(len(others)))])
    turned = rng.random() < noise.turned
    written = [_written(name, turned, noise, rng) for name in named]
    if not written:
        return "Visitors at the fair"
    if turned:
        return _LISTS.format(people="; ".join(written))
    template = _TEMPLATES[int(rng.integers(len(_TEMPLATES)))]
    joined = ", ".join(written[:-1]) + (" and " if len(written) > 1 else "") + written[-1]
    return template.format(people=joined)


def _written(name: str, turned: bool, noise: CaptionNoise, rng: np.random.Generator) -> str:
    given, _, family = name.rpartition(" ")
    if given and rng.random() < noise.shortened:
        first = given.split()[0]
        given = f"{first[0]}." if rng.random() < 0.5 else first
    if rng.random() < noise.misspelt:
        family = _misspelt(family, rng)
    if not given:
        return family
    return f"{family}, {given}" if turned else f"{given} {family}"


def _misspelt(word: str, rng: np.random.Generator) -> str:
    """Return a word with a letter lost, doubled, or exchanged with the next."""
    at = int(rng.integers(1, max(2, len(word) - 1)))
    kind = int(rng.integers(3))
    if kind == 0:
        return word[:at] + word[at + 1 :]
    if kind == 1:
        return word[: at + 1] + word[at:]
    return word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :]
