"""What answers about groups of faces look like; see `answers` for how they are used."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from setnet.client.answers.base_answer import Answer
from setnet.client.answers.photo_answers import Corners, PhotoAnswer


class CoverAnswer(Answer):
    """A face of a photo."""

    photo: str
    face: Annotated[int, Field(description="The number of the face in the photo, from 0")]
    box: Corners


class GroupAnswer(Answer):
    """Faces that are probably one person's."""

    id: Annotated[str, Field(description="Its own for good, such as g17")]
    name: Annotated[str | None, Field(description="Whose it is; null as long as it has no name")]
    person: Annotated[str | None, Field(description="The id of that saved person")]
    hidden: bool
    faces: int
    photos: int
    cover: Annotated[CoverAnswer | None, Field(description="The face that stands for it")]
    first: Annotated[str | None, Field(description="The date of the earliest photo")]
    last: Annotated[str | None, Field(description="The date of the latest photo")]
    change: Annotated[int | None, Field(description="After a change: its number, to undo it")] = None


class TotalsAnswer(Answer):
    """How many groups there are, of at least `min_faces` faces."""

    unnamed: int
    named: int
    hidden: int


class GroupsAnswer(Answer):
    """Groups, the largest first."""

    groups: list[GroupAnswer]
    cursor: str | None
    totals: TotalsAnswer
    grouped_at: Annotated[float | None, Field(description="Seconds since 1970; null: never yet")]
    ungrouped_faces: Annotated[int, Field(description="Faces that came since")]


class MemberAnswer(CoverAnswer):
    """A face of a group."""

    path: str
    taken: str | None


class GroupMembersAnswer(GroupAnswer):
    """A group with some of its faces, the latest taken first."""

    members: list[MemberAnswer]
    cursor: str | None


class SuggestionAnswer(Answer):
    """A group that may be a saved person's."""

    person: str
    id: Annotated[str, Field(description="The person's")]
    group: GroupAnswer
    similarity: Annotated[float, Field(description="Of the group's faces to the person, on average")]
    probability: float


class SuggestionsAnswer(Answer):
    """Suggestions, the most probable first."""

    suggestions: list[SuggestionAnswer]


class PersonPhotoAnswer(PhotoAnswer):
    """A photo with a person in it."""

    face: Annotated[int, Field(description="Which face is theirs, from 0")]
    sure: Annotated[bool, Field(description="Surely theirs, or confirmed; else by their group alone")]


class PersonPhotosAnswer(Answer):
    """Photos of a person, the latest taken first."""

    photos: list[PersonPhotoAnswer]
    total: int
    cursor: str | None
