"""The demo's three queries, and the score of their answers by the ground truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from setnet.cli.demo.album import AlbumPhoto
from setnet.cli.demo.cutouts import PEOPLE

# Four of the ten synthetic people were drawn alike (similarities of up to 0.64, where strangers on photos
# hardly reach 0.35): they are in the album, but not looked for.
DISTINCT = tuple(person for person in PEOPLE if person not in ("P002", "P004", "P006", "P010"))


@dataclass(frozen=True, slots=True)
class DemoQuery:
    """People to look for, and people who must not be in the photo."""

    people: tuple[str, ...]
    without: tuple[str, ...] = ()

    def __str__(self) -> str:
        wanted = ", ".join(self.people[:-1]) + f" and {self.people[-1]}"
        return wanted + (f", without {self.without[0]}" if self.without else "")

    def relevance(self, photo: AlbumPhoto) -> int:
        """Return how many of the people are in the photo; 0 if somebody unwanted is."""
        if set(self.without) & set(photo.people):
            return 0
        return len(set(self.people) & set(photo.people))


def three_queries(photos: Sequence[AlbumPhoto]) -> list[DemoQuery]:
    """Return two people, three people, and two without a third: the most often together."""

    def together(people: tuple[str, ...]) -> int:
        return sum(set(people) <= set(photo.people) for photo in photos)

    pair, other = sorted(combinations(DISTINCT, 2), key=together)[-2:]
    triple = max(combinations(DISTINCT, 3), key=together)
    third = max((p for p in DISTINCT if p not in other), key=lambda p: together((*other, p)))
    return [DemoQuery(pair), DemoQuery(triple), DemoQuery(other, (third,))]


def ndcg_at_10(query: DemoQuery, ranked: Sequence[AlbumPhoto], photos: Sequence[AlbumPhoto]) -> float:
    """Return nDCG@10 of an answer in percent (paper, equation 3)."""
    from setnet.evaluate import ndcg

    found = [query.relevance(photo) for photo in ranked]
    return float(ndcg(found + [0] * (10 - len(found)), [query.relevance(photo) for photo in photos], 10))
