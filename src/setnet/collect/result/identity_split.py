"""Training, validation and test people who never overlap, chosen so that few photos mix them."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

SPLITS = ("train", "validation", "test")


def split_people(
    names: Sequence[str],
    together: Mapping[tuple[str, str], int],
    shares: Sequence[float],
    seed: int = 0,
) -> dict[str, str]:
    """Return the split of each person.

    A photo with people of two splits can be in neither, so people who are often together go to the same one:
    test and validation grow, from a random person on, by whoever is most often with those already in.

    Parameters
    ----------
    names
        The people.
    together
        In how many photos two people are together.
    shares
        Shares of people for training, validation and test.

    Examples
    --------
    >>> split_people(["a", "b", "c", "d"], {("a", "b"): 3, ("c", "d"): 1}, (0.5, 0, 0.5), seed=1)
    {'a': 'test', 'b': 'test', 'c': 'train', 'd': 'train'}
    """
    ties: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for (first, second), photos in together.items():
        ties[first].append((second, photos))
        ties[second].append((first, photos))
    rng = np.random.default_rng(seed)
    order = [sorted(names)[i] for i in rng.permutation(len(names)).tolist()]
    sizes = {split: round(share * len(names)) for split, share in zip(SPLITS, shares, strict=True)}
    chosen: dict[str, str] = {}
    for split in ("test", "validation"):
        _grow(split, sizes[split], order, ties, chosen)
    return {name: chosen.get(name, "train" if sizes["train"] or not chosen else "test") for name in names}


def _grow(
    split: str,
    size: int,
    order: Iterable[str],
    ties: Mapping[str, list[tuple[str, int]]],
    chosen: dict[str, str],
) -> None:
    fresh = iter(order)
    strength: dict[str, int] = defaultdict(int)
    heap: list[tuple[int, str]] = []
    taken = 0
    while taken < size:
        name = _strongest(heap, strength, chosen)
        if name is None:
            name = next((each for each in fresh if each not in chosen), None)
        if name is None:
            return
        chosen[name] = split
        taken += 1
        for other, photos in ties.get(name, ()):
            if other not in chosen:
                strength[other] += photos
                heapq.heappush(heap, (-strength[other], other))


def _strongest(
    heap: list[tuple[int, str]], strength: Mapping[str, int], chosen: Mapping[str, str]
) -> str | None:
    while heap:
        negative, name = heapq.heappop(heap)
        if name not in chosen and -negative == strength[name]:
            return name
    return None


def split_of(people: Iterable[str], splits: Mapping[str, str]) -> str | None:
    """Return the split of a photo; None when its people are of several."""
    found = {splits[name] for name in people}
    return found.pop() if len(found) == 1 else None
