"""Export a library's descriptors to a descriptor file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from setnet.library.recognition.face_identity import NamedPeople
from setnet.library.store.descriptor_file import refuse_place, write_descriptor_file
from setnet.library.store.paths import shown

if TYPE_CHECKING:
    from setnet.library.library import Library


@dataclass(frozen=True, slots=True)
class ExportReport:
    """How many photos, faces and labelled faces were written."""

    photos: int
    faces: int
    labelled: int

    def to_dict(self) -> dict[str, int]:
        """Return the numbers as values that JSON can hold."""
        return asdict(self)


def export(library: Library, path: Path) -> ExportReport:
    """Write `descriptors`, `labels`, `counts` (faces per photo), `paths` and `ids` of photos.

    A face is labelled with the saved person it surely is.
    """
    refuse_place(path)
    people = NamedPeople.of(library)
    vectors, labels, counts, paths, ids = [], list[str](), list[int](), list[str](), list[str]()
    for photo in library.catalog.all_photos():
        found = library.descriptors(photo.id)
        vectors.append(found)
        for number, descriptor in enumerate(found):
            identity = people.identify(descriptor, face=(photo.id, number))
            labels.append(identity.name if identity.sure else "")
        counts.append(len(found))
        paths.append(shown(photo.path))
        ids.append(photo.id)
    descriptors = np.concatenate([np.zeros((0, library.dim), np.float32), *vectors])
    write_descriptor_file(
        path,
        descriptors,
        labels,
        counts=np.array(counts, np.int64),
        paths=np.array(paths, np.str_),
        ids=np.array(ids, np.str_),
        model=np.array((library.catalog.meta("model") or "").partition(" ")[0]),
    )
    return ExportReport(len(ids), len(labels), sum(label != "" for label in labels))
