"""The query for photos: people to look for, conditions on the photos, and how many to return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, one_of
from setnet.library.search.conditions import Conditions
from setnet.library.search.query_person import QueryPerson

MODES = ("exact", "fast", "set")  # the engine's others are not for photos

PersonLike = str | QueryPerson | NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class PhotoQuery:
    """A query for photos that contain a set of people.

    Attributes
    ----------
    people, without
        The people to look for, and people who must not be in the photo: saved names, paths of photos or
        of folders of photos, descriptors ((dim,) or (n, dim) for n examples), or `QueryPerson`.
    k, offset
        How many photos to return, and how many of the best to skip before them.
    mode
        `exact` compares every face; `fast` ranks by one bit per dimension of each face, then re-ranks
        the best exactly; `set` uses set vectors alone.
    at_least
        How many of the people must be matched in a photo; with 0, photos with nobody of them follow.
    only
        Whether photos with anybody else in them are left out.
    sure
        Whether only sure matches count, for `at_least` and `only` too.
    min_similarity
        The similarity from which a face matches a person, in place of the one that follows from the number of
        examples and of faces searched. Which matches are sure does not change.
    totals
        Whether to count the photos with all of the people, all but one and so on down to one.
    conditions
        Conditions on time, folder, number of faces, and whether it is a photo or a shot of a video.
    threads
        Threads of the search; one per core by default.
    """

    people: Sequence[PersonLike]
    without: Sequence[PersonLike] = ()
    k: int = 20
    offset: int = 0
    mode: str = "exact"
    at_least: int = 1
    only: bool = False
    sure: bool = False
    min_similarity: float | None = None
    totals: bool = False
    conditions: Conditions | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if not len(self.people):
            raise InvalidInputError("nobody to look for: name a person or give a photo of one")
        if self.at_least > len(self.people):
            raise InvalidInputError(f"at least {self.at_least} of {len(self.people)} people cannot be met")
        if self.min_similarity is not None and not -1 <= self.min_similarity <= 1:
            raise InvalidInputError(
                f"min_similarity {self.min_similarity}: a number from -1 to 1 is expected"
            )
        if self.mode not in MODES:
            raise one_of("mode", self.mode, MODES)
