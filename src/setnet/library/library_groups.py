"""What a library does about groups of faces: finding and naming them, suggestions, a person's photos."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from setnet.durable import own_errors
from setnet.engine import SetIndex
from setnet.errors import InvalidInputError
from setnet.library.group_naming import (
    GroupToName,
    IsSure,
    Place,
    check_unchanged,
    example_faces,
    group_to_name,
    name_group,
    reject_group,
)
from setnet.library.groups import Group, Groups
from setnet.library.library_people import LibraryPeople
from setnet.library.people import check_name_free
from setnet.library.person import Example, Person, person_at
from setnet.library.query import QueryPerson, judged_faces, picture_of
from setnet.library.same_person import mixed_warning

if TYPE_CHECKING:
    from setnet.library.clustering import OnProgress
    from setnet.library.group_naming import GroupMeans, Suggestion
    from setnet.library.grouping import GroupingReport
    from setnet.library.library import Library
    from setnet.library.search import PersonPhotos

# Faces so little above what is sure are kept as confirmed too: the more photos come, the more it takes to be.
_MARGIN = 0.05


class LibraryGroups(LibraryPeople):
    """The part of `Library` about groups; `groups` is the collection itself."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.groups = Groups(self._database)
        self._means: GroupMeans | None = None
        self._photo_counts: tuple[int, dict[str, int]] = (0, {})  # as of a commit

    @own_errors
    def discover(
        self,
        *,
        anew: bool = False,
        progress: OnProgress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> GroupingReport:
        """Group the faces that are in no group yet; an index run ends with that too.

        Parameters
        ----------
        anew
            Group all faces again, but those of named and hidden groups, which stay together.
        progress
            Called now and then with what is being done, how much of it is done, and of how much.
        should_stop
            Called again and again; True ends the work as Ctrl-C does: the groups are then as they were.
        """
        with self.locked():
            return self._group(self.set_index, anew=anew, progress=progress, should_stop=should_stop)

    def _group(
        self,
        index: SetIndex,
        *,
        anew: bool = False,
        progress: OnProgress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> GroupingReport:
        from setnet.library.grouping import GroupingReport, group_library

        def say(stage: str, done: int, total: int) -> None:
            if should_stop is not None and should_stop():
                raise KeyboardInterrupt
            if progress is not None:
                progress(stage, done, total)

        try:
            return group_library(self._database, index, self.matching.model, anew=anew, progress=say)
        except KeyboardInterrupt:
            return GroupingReport(interrupted=True)

    @own_errors
    def examples_to_name(self, group_id: str, name: str, without: Collection[Place] = ()) -> list[Place]:
        """Return the faces of a group that become examples when it gets this name."""
        group = self._to_name(group_id, name, without)
        return list(self._chosen(group))

    @own_errors
    def name_group(
        self,
        group_id: str,
        name: str,
        without: Collection[Place] = (),
        if_exists: str = "ask",
        pictures: Mapping[Place, bytes | None] | None = None,
    ) -> tuple[Person, list[str]]:
        """Give a group the name of a person, new or saved; return them, and remarks for the user.

        A dozen faces of the group become examples. Faces in `without` are kept as not theirs; faces that were
        refused for them before are left out too. One change, which can be undone.

        Parameters
        ----------
        if_exists
            `ask`, `add` or `refuse`: see `setnet.library.people.save_person`.
        pictures
            Small pictures of the faces that `examples_to_name` returns; made from the photos by default.
        """
        group = self._to_name(group_id, name, without)
        chosen = self._chosen(group)
        check_name_free(self.people, name, list(chosen.values()), self.set_index.logistic, if_exists)
        if pictures is None:
            pictures = {place: picture_of(self.catalog.photo(place[0]), place[1]) for place in chosen}
        examples = [replace(example, picture=pictures.get(place)) for place, example in chosen.items()]
        before = self.people.examples(name) if name in self.people else []
        is_sure = self._is_sure(name, [*before, *examples])
        with self.people.recording() as recorder:
            check_unchanged(recorder.db, group)
            row, change = name_group(recorder, group, name, examples, is_sure)
            person = person_at(recorder.db, row, change)
        after = self.people.examples(person)
        return person, mixed_warning(person.name, before, after, self.set_index.logistic)

    def _to_name(self, group_id: str, name: str, without: Collection[Place]) -> GroupToName:
        refused = judged_faces(self.people, name)[1] if name in self.people else frozenset()
        with self._database.reading() as db:
            return group_to_name(db, self.people, group_id, without, refused)

    def _chosen(self, group: GroupToName) -> dict[Place, Example]:
        """Return the faces of a group that become examples."""
        places = list(group.faces)
        photos = self.catalog.photos(photo for photo, _ in places)
        quality = [
            self.matching.model.quality(photos[photo].faces[face].quality) if photo in photos else 0.1
            for photo, face in places
        ]
        vectors = np.stack([example.descriptor for example in group.faces.values()])
        return {places[row]: group.faces[places[row]] for row in example_faces(vectors, np.array(quality))}

    def _is_sure(self, name: str, examples: list[Example]) -> IsSure:
        """Return the function that tells which faces would surely be found with these examples."""
        refused = judged_faces(self.people, name)[1] if name in self.people else frozenset()
        person = QueryPerson(name, np.stack([e.descriptor for e in examples]), refused=refused)
        recogniser = self.matching.recogniser(person)

        def is_sure(vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
            return np.asarray(vectors @ recogniser.vector >= recogniser.sure + _MARGIN)

        return is_sure

    @own_errors
    def refuse_group(self, group_id: str, name: str) -> Group:
        """Keep that no face of a group is this person's: it is not suggested for them any more."""
        return reject_group(self.people, group_id, self.people.get(name))

    def group_person(self, group_id: str) -> QueryPerson:
        """Return a group as a person of a query: all its faces are theirs, whatever they look like."""
        with self._database.reading() as db:
            group = group_to_name(db, self.people, group_id, ())
        vectors = np.stack([example.descriptor for example in self._chosen(group).values()])
        return QueryPerson(group.group.id, vectors, confirmed=frozenset(group.faces))

    @own_errors
    def photos_with(self, name: str, offset: int = 0, limit: int | None = None) -> PersonPhotos:
        """Return the photos of a saved person, the latest taken first, from number `offset` on.

        Those with a face that is surely theirs, was confirmed, or is in a group of theirs.
        """
        from setnet.library.search import photos_of_person

        person = self.people.get(name)
        members = (
            (face.photo_id, face.face)
            for group in self.groups.of_person(person.id)
            for face in self.groups.members(group.id)
        )
        return photos_of_person(cast("Library", self), person.name, members, offset, limit)

    @own_errors
    def photos_of(self, name: str) -> int:
        """Return how many photos `photos_with` finds of a saved person."""
        return self.photos_with(name, limit=0).total

    @own_errors
    def photo_counts(self) -> dict[str, int]:
        """Return `photos_of` each saved person by their id; counted once until photos or people change."""
        commit = self.catalog.commit()
        if not commit or self._photo_counts[0] != commit:
            counts = {}
            for person in self.people:
                with suppress(InvalidInputError):  # removed a moment ago
                    counts[person.id] = self.photos_of(person.id)
            self._photo_counts = commit, counts
        return self._photo_counts[1]

    @own_errors
    def suggestions(self, name: str | None = None, limit: int = 20) -> list[Suggestion]:
        """Return groups without a name that may be a saved person's, the most probable first.

        To confirm one, give the group their name; to refuse it, `refuse_group`.
        """
        from setnet.library.group_naming import GroupMeans, suggestions

        library = cast("Library", self)
        self._means = GroupMeans.of(library, self._means)
        return suggestions(library, self._means, None if name is None else self.people.get(name), limit)
