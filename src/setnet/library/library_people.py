"""What a library does about people that needs its photos, its index or its models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from setnet.durable import own_errors, transaction
from setnet.library.files import LibraryFiles
from setnet.library.people import Descriptors, save_person
from setnet.library.person import Example, Person
from setnet.library.query import examples_from, face_at, picture_of

if TYPE_CHECKING:
    from setnet.library.people_edits import FaceName, FacesNamed
    from setnet.library.people_exchange import PeopleExport, PeopleImport
    from setnet.library.people_file import PeopleFile

_PROGRESS_STEP = 200  # faces


class LibraryPeople(LibraryFiles):
    """The part of `Library` about people; `people` is the collection itself."""

    @own_errors
    def add_person(
        self, name: str, images: Sequence[str], if_exists: str = "ask"
    ) -> tuple[Person, list[str]]:
        """Save example faces of a person from photos; return the person, and remarks for the user."""
        examples, notes = self.examples_in(images)
        person, more = self.save_person(name, examples, if_exists)
        return person, [*notes, *more]

    @own_errors
    def examples_in(self, images: Sequence[str]) -> tuple[list[Example], list[str]]:
        """Return an example face of each photo, or of each photo in a folder, and remarks for the user."""
        return examples_from(images, self._checked_settings())

    @own_errors
    def save_person(
        self, name: str, examples: Sequence[Example], if_exists: str = "ask"
    ) -> tuple[Person, list[str]]:
        """Save example faces of a person; `TakenError` where they would be mixed with another's.

        `if_exists` is `ask`, `add` or `refuse`: see `setnet.library.people.save_person`.
        """
        return save_person(self.people, name, examples, self.set_index.logistic, if_exists)

    @own_errors
    def face_at(self, text: str) -> tuple[str, int]:
        """Return the photo's id and the number, from 0, of a face such as `group.jpg#3`."""
        return face_at(text, self.catalog)

    @own_errors
    def confirm(self, name: str, photo_id: str, face: int) -> Person:
        """Keep that a face of a photo is this person; it becomes an example of them, with a picture."""
        return self.people.confirm(name, photo_id, face, picture_of(self.catalog.photo(photo_id), face))

    @own_errors
    def name_faces(
        self,
        faces: Sequence[FaceName],
        *,
        dry_run: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> FacesNamed:
        """Keep that faces of photos are people, new or saved, in one change that can be undone.

        All faces are kept as confirmed; of each person good ones become examples, up to a dozen in all. A
        face that is somebody else's, or was refused for the person, stays as it is. A `dry_run` only reports.
        """
        from setnet.library.people_edits import FaceNaming, name_faces

        def listed(stage: str) -> Iterator[FaceName]:
            for done, said in enumerate(faces):
                if progress is not None and done % _PROGRESS_STEP == 0:
                    progress(stage, done, len(faces))
                yield said

        with self._database.reading() as db, transaction(db, "BEGIN"):
            naming = FaceNaming(db, listed("comparing names"))
        if dry_run or not naming.report.named:
            return naming.report
        descriptors = cache(self.people.descriptors_in)
        people = naming.by_person.values()
        chosen = [said for members in people for said in self._typical(members, descriptors)]
        pictures = {}
        for done, (_, photo_id, face) in enumerate(chosen):
            if progress is not None:
                progress("drawing example faces", done, len(chosen))
            pictures[photo_id, face] = picture_of(self.catalog.photo(photo_id), face)
        with self.people.recording() as recorder:
            return name_faces(recorder, listed("storing names"), pictures, descriptors)

    def _typical(self, faces: Sequence[FaceName], descriptors: Descriptors) -> list[FaceName]:
        """Return those of a person's faces that become examples beside the ones they have."""
        from setnet.library.group_naming import MOST_EXAMPLES, example_faces

        name = faces[0].name
        most = MOST_EXAMPLES - (self.people.get(name).examples if name in self.people else 0)
        if most < 1:
            return []
        photos = self.catalog.photos(said.photo_id for said in faces)
        vectors = np.stack([descriptors(said.photo_id)[said.face] for said in faces])
        quality = [
            self.matching.model.quality(photos[said.photo_id].faces[said.face].quality) for said in faces
        ]
        return [faces[row] for row in example_faces(vectors, np.array(quality), most)]

    @own_errors
    def exported_people(self, *, descriptors: bool = True) -> PeopleFile:
        """Return all saved people as a file that another library can read, as of one moment."""
        from setnet.library.people_exchange import export_people

        model = self.catalog.meta("model") or ""
        with self._database.reading() as db, transaction(db, "BEGIN"):
            return export_people(self.people, model if descriptors else None, self.dim)

    @own_errors
    def export_people(self, file: str | Path, *, descriptors: bool = True) -> PeopleExport:
        """Write all saved people to a JSON file, with their descriptors or without."""
        from setnet.library.people_exchange import write_people

        return write_people(self.exported_people(descriptors=descriptors), Path(file))

    @own_errors
    def import_people(self, file: str | Path | bytes, *, descriptors: bool = True) -> PeopleImport:
        """Add the people of a file, or of its bytes, to those saved here, in one step.

        Without its `descriptors`, faces are found again in the photos of this library.
        """
        from setnet.library.people_exchange import import_file

        return import_file(self.people, file, self.catalog.meta("model") or "", use_descriptors=descriptors)
