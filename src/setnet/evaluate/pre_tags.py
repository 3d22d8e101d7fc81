"""Pre-tagging (paper 5.3): known people are recognised once, and an inverted index answers by name.

The baseline that set retrieval is compared with: quick and small, and blind to whoever is not in the gallery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.engine import Hit, Match
from setnet.engine.query import merged as merged_examples
from setnet.errors import InvalidInputError, choice_error
from setnet.heads import Logistic

EXAMPLE_LIMIT = 10
_ROWS = 16384  # elements compared at once

_Tags = dict[int, tuple[int, float]]  # of one name: item to element and similarity


class PreTags:
    """Which items hold which names of a gallery.

    Each name has up to ten examples, merged into one descriptor. An element is tagged with the one name it
    resembles most when sigmoid(w s + b) reaches ``threshold``.
    """

    def __init__(self, gallery: Mapping[str, ArrayLike], logistic: Logistic, threshold: float = 0.5) -> None:
        if not gallery:
            raise InvalidInputError("the gallery is empty: give at least one name with its examples")
        if not 0 < threshold < 1:
            raise InvalidInputError(f"threshold {threshold} must lie between 0 and 1: it is a probability")
        self._least = (np.log(threshold / (1 - threshold)) - logistic.b) / logistic.w
        self._gallery = np.concatenate([_descriptor(name, rows) for name, rows in gallery.items()])
        self._tags: dict[str, _Tags] = {name: {} for name in gallery}
        self._ids: list[str] = []

    @property
    def entries(self) -> int:
        """How many pairs of a name and an item there are."""
        return sum(map(len, self._tags.values()))

    def add(self, ids: Sequence[str], elements: NDArray[np.float32], counts: NDArray[np.int64]) -> None:
        """Tag items: ``elements`` has those of all items, one item after another."""
        first, names = len(self._ids), list(self._tags)
        self._ids += ids
        owner = np.repeat(np.arange(len(ids)), counts)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        for at in range(0, len(owner), _ROWS):
            similarities = elements[at : at + _ROWS] @ self._gallery.T
            who = similarities.argmax(axis=1)
            best = similarities[np.arange(len(who)), who]
            for row in np.flatnonzero(best >= self._least).tolist():
                tags, item = self._tags[names[who[row]]], first + int(owner[at + row])
                if item not in tags or tags[item][1] < best[row]:
                    tags[item] = int(place[at + row]), float(best[row])

    def search(self, names: Sequence[str], k: int) -> list[Hit]:
        """Return the items tagged with most of the names.

        Items with as many go by the sum of similarities, then by order of insertion.
        """
        found: dict[int, list[Match]] = {}
        for position, name in enumerate(names):
            if name not in self._tags:
                raise choice_error("tag", name, sorted(self._tags)[:20])
            for item, (element, similarity) in self._tags[name].items():
                found.setdefault(item, []).append(Match(position, element, similarity))
        ranked = sorted(found, key=lambda item: (-len(found[item]), -_sum(found[item]), item))
        return [Hit(self._ids[item], float(len(found[item])), tuple(found[item])) for item in ranked[:k]]


def _sum(matches: Sequence[Match]) -> float:
    return sum(match.similarity for match in matches)


def _descriptor(name: str, examples: ArrayLike) -> NDArray[np.float32]:
    rows = np.atleast_2d(np.asarray(examples, dtype=np.float32))
    if len(rows) > EXAMPLE_LIMIT:
        raise InvalidInputError(f"{len(rows)} examples of {name!r}: at most {EXAMPLE_LIMIT} are used")
    return merged_examples(rows)
