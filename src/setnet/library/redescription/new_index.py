"""An index with the descriptors of another model, under way beside the library's own.

It grows over as many runs as it takes. An item counts as described once a line of `photos.log` says so, with
the moment at which the photo's faces were stored: when a photo has been indexed again since, its faces are
described again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from setnet.durable import append_durably, replace_file
from setnet.engine import SetIndex
from setnet.library.maintenance import creation
from setnet.library.redescription.face_describer import DescribedPhoto
from setnet.library.store.location import INDEX, REDESCRIBED
from setnet.library.store.photo_catalog import taken_number
from setnet.library.store.photo_writer import attributes_of

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

_ABOUT, _LOG = "model.json", "photos.log"


class NewIndex:
    """The new index of a library and what is in it already; begun anew when it is of other settings."""

    def __init__(self, library: Path, settings: FaceSettings, dim: int) -> None:
        self.folder = library / REDESCRIBED
        about = {"facts": creation.facts_about(settings, dim)}
        if self._read(_ABOUT) != json.dumps(about):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(mode=0o700)
            creation.create_index(self.folder / INDEX, settings, dim)
            replace_file(self.folder / _LOG, b"")
            replace_file(self.folder / _ABOUT, json.dumps(about).encode())
        os.utime(self.folder)  # its week begins
        self.index = SetIndex.open(self.folder / INDEX)

    def __enter__(self) -> NewIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.index.close()

    def _read(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def only(self, wanted: Mapping[int, tuple[float, int]]) -> set[int]:
        """Take out what does not, or no longer, describe a photo; return the photos that are described.

        `wanted` has the moment at which each photo was stored, and its number of faces.
        """
        logged = dict(_parsed(line) for line in self._read(_LOG).splitlines())
        there = {int(item.id): item.elements for item in self.index.items()}
        done = {photo for photo in there if wanted.get(photo) == (logged.get(photo), there[photo])}
        if other := [str(photo) for photo in there if photo not in done]:
            self.index.delete(other)
        return done

    def add(self, photos: Sequence[DescribedPhoto], stored: Mapping[int, tuple[float, int]]) -> None:
        """Store new descriptors of photos, and then that they are stored."""
        if not photos:
            return
        self.index.add(
            [described.photo.id for described in photos],
            np.concatenate([described.descriptors for described in photos]),
            [len(described.descriptors) for described in photos],
            attributes=[
                attributes_of(photo.stored_path, taken_number(photo.taken), len(photo.faces), photo.start)
                for photo in (described.photo for described in photos)
            ],
        )
        # a new line first: the last one may have been cut short
        lines = (f"\n{d.photo.id} {stored[int(d.photo.id)][0]!r}" for d in photos)
        append_durably(self.folder / _LOG, "".join(lines).encode())

    def delete(self) -> None:
        """Delete all of it: the library has taken it over."""
        self.index.close()
        shutil.rmtree(self.folder)


def _parsed(line: str) -> tuple[int, float | None]:
    """Return the photo of a line and when it was stored; a line that was cut short says nothing.

    >>> _parsed("12 1700000000.5"), _parsed("12 17000"), _parsed("12 1.5 13 2.5"), _parsed("")
    ((12, 1700000000.5), (12, 17000.0), (-1, None), (-1, None))
    """
    photo, _, moment = line.partition(" ")
    try:
        return int(photo), float(moment)
    except ValueError:
        return -1, None
