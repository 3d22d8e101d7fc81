"""Brings an index up to date with Immich: what is gone goes first, then what is new or changed comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.connect.immich.immich_tables import ImmichTables
from setnet.connect.immich.reading import PhotoState, read_descriptors_of
from setnet.connect.postgres.connection import Connection
from setnet.engine import SetIndex

BATCH = 1000  # photos in one transaction of the index

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a synchronisation did, in photos; ``people`` is how many people Immich has.

    ``added`` are new, ``changed`` have other faces, ``renamed`` have the same faces but of other people or
    other facts, ``removed`` are gone, hidden or in the trash. ``skipped`` have a face whose descriptor is not
    usable.
    """

    added: int
    changed: int
    renamed: int
    removed: int
    skipped: int
    photos: int
    people: int

    def to_dict(self) -> dict[str, int]:
        """Return the numbers for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Difference:
    """Which photos of Immich are not in the index as they are, by id."""

    new: list[str]
    changed: list[str]
    renamed: list[str]
    gone: list[str]

    @classmethod
    def between(cls, stored: dict[str, PhotoState], wanted: dict[str, PhotoState]) -> Difference:
        """Compare what is stored with what Immich has."""
        both = sorted(stored.keys() & wanted.keys())
        changed = [name for name in both if stored[name].stamp != wanted[name].stamp]
        same = set(both) - set(changed)
        renamed = sorted(name for name in same if stored[name] != wanted[name])
        return cls(
            sorted(wanted.keys() - stored.keys()), changed, renamed, sorted(stored.keys() - wanted.keys())
        )


def bring_up_to_date(
    index: SetIndex,
    connection: Connection,
    tables: ImmichTables,
    wanted: dict[str, PhotoState],
    progress: Progress = lambda done, photos: None,
) -> tuple[Difference, int]:
    """Make the index hold what Immich has, some photos at a time; return what differed and was skipped.

    Interrupted at any moment, it has done a part, and the next run does the rest.
    """
    stored = {item.id: PhotoState.of_attributes(item.attributes) for item in index.items()}
    differs = Difference.between(stored, wanted)
    for some in _batches(differs.gone):
        index.delete(some)
    for some in _batches(differs.renamed):
        _add(index, some, [index.elements(name) for name in some], wanted)
    fresh = [*differs.new, *differs.changed]
    skipped = 0
    for number, some in enumerate(_batches(fresh)):
        found = read_descriptors_of(connection, tables, some)
        good = [name for name in some if _usable(found.get(name), wanted[name], tables.dim)]
        _add(index, good, [found[name] for name in good], wanted)
        skipped += len(some) - len(good)
        progress(min((number + 1) * BATCH, len(fresh)), len(fresh))
    return differs, skipped


def _add(
    index: SetIndex, names: Sequence[str], faces: list[NDArray[np.float32]], wanted: dict[str, PhotoState]
) -> None:
    if names:
        counts = [len(rows) for rows in faces]
        index.add(names, np.concatenate(faces), counts, [wanted[name].attributes() for name in names])


def _usable(faces: NDArray[np.float32] | None, state: PhotoState, dim: int) -> bool:
    """Whether there is a descriptor for each face, and none of NaN or of zeros."""
    if faces is None or faces.shape != (len(state.persons), dim):
        return False
    return bool(np.isfinite(faces).all() and (faces != 0).any(axis=1).all())


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for at in range(0, len(names), BATCH):
        yield names[at : at + BATCH]
