"""What the engine is compared with: a plain scan in NumPy, and the pre-tagging of section 5.3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from setnet.engine import Hit, Match, greedy_matches
from setnet.engine.query import merge_examples
from setnet.evaluate.stress_trial import probability_in_place
from setnet.evaluate.worlds import World
from setnet.heads import Logistic

Floats = NDArray[np.float32]


class PlainElements:
    """Every face in one array, items of equal size together; each query compares and matches them all."""

    def __init__(self, world: World) -> None:
        parts: dict[int, list[Floats]] = {}
        items: dict[int, list[NDArray[np.int64]]] = {}
        for chunk in world.chunks():
            starts = np.cumsum(chunk.counts) - chunk.counts
            for size in np.unique(chunk.counts).tolist():
                which = np.flatnonzero(chunk.counts == size)
                rows = (starts[which][:, None] + np.arange(size)).ravel()
                parts.setdefault(size, []).append(chunk.elements[rows])
                items.setdefault(size, []).append(chunk.first + which)
        self.sizes = sorted(size for size in parts if size)
        self.rows = {size: np.concatenate(parts.pop(size)) for size in self.sizes}
        self.items = {size: np.concatenate(items.pop(size)) for size in self.sizes}

    def search(self, people: Floats, k: int, logistic: Logistic) -> NDArray[np.int64]:
        """Return the k items with the highest sum of scores under greedy matching, best first."""
        scores, items = [], []
        for size in self.sizes:
            sims = (self.rows[size] @ people.T).reshape(-1, size, len(people)).transpose(0, 2, 1)
            element = greedy_matches(sims)
            matched = np.take_along_axis(sims, np.maximum(element, 0)[..., None], axis=2)[..., 0]
            scores.append(np.where(element < 0, 0, probability_in_place(matched, logistic)).sum(axis=1))
            items.append(self.items[size])
        total, k = np.concatenate(scores), min(k, sum(map(len, scores)))
        top = np.argpartition(-total, k - 1)[:k]
        return np.concatenate(items)[top[np.argsort(-total[top], kind="stable")]]


_ROWS = 16384  # elements compared at once

_Tags = dict[int, tuple[int, float]]  # of one name: item to element and similarity


class PreTags:
    """Which items hold which names of a gallery: known people are recognised once, and found by name.

    Quick and small, and blind to whoever is not in the gallery. The examples of each name are merged into one
    descriptor; an element is tagged with the one name it resembles most if that is a match.
    """

    def __init__(self, gallery: Mapping[str, Floats], logistic: Logistic) -> None:
        self._threshold = logistic.threshold
        self._gallery = np.concatenate([merge_examples(rows) for rows in gallery.values()])
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
            for row in np.flatnonzero(best >= self._threshold).tolist():
                tags, item = self._tags[names[who[row]]], first + int(owner[at + row])
                if item not in tags or tags[item][1] < best[row]:
                    tags[item] = int(place[at + row]), float(best[row])

    def search(self, names: Sequence[str], k: int) -> list[Hit]:
        """Return the items tagged with most of the names.

        Items with as many go by the sum of similarities, then by order of insertion.
        """
        found: dict[int, list[Match]] = {}
        for position, name in enumerate(names):
            for item, (element, similarity) in self._tags[name].items():
                found.setdefault(item, []).append(Match(position, element, similarity))
        ranked = sorted(found, key=lambda item: (-len(found[item]), -_sum(found[item]), item))
        return [Hit(self._ids[item], float(len(found[item])), tuple(found[item])) for item in ranked[:k]]


def _sum(matches: Sequence[Match]) -> float:
    return sum(match.similarity for match in matches)
