"""What requests and answers of the API look like; the OpenAPI page is made from these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

__all__ = [
    "Box",
    "FaceIds",
    "FacesAnswer",
    "FolderQuery",
    "ForgetQuery",
    "Hit",
    "IndexQuery",
    "MergeQuery",
    "NewPerson",
    "PeopleAnswer",
    "PersonAnswer",
    "PersonQuery",
    "PhotoAnswer",
    "PhotoFace",
    "PhotosAnswer",
    "ProblemAnswer",
    "RenameQuery",
    "SearchAnswer",
    "SearchQuery",
    "SessionQuery",
]

MOST_PEOPLE = 16

Box = Annotated[list[float], Field(min_length=4, max_length=4, description="x0, y0, x1, y1 in pixels")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Vector = Annotated[list[float], Field(min_length=1, max_length=4096)]
PhotoId = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")]
Date = Annotated[str, StringConstraints(min_length=4, max_length=32)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PhotoFace(_Strict):
    """A face of a photo in the library."""

    photo: PhotoId
    face: Annotated[int, Field(ge=0, le=100_000, description="Its number in the photo, from 0")]


class Examples(_Strict):
    """Where the example faces of a person come from; several sources may be given together."""

    faces: Annotated[list[str], Field(max_length=32, description="Face ids of POST /faces")] = []
    photo_faces: Annotated[list[PhotoFace], Field(max_length=32)] = []
    images: Annotated[
        list[str], Field(max_length=4, description="Base64 of images; the largest face is taken")
    ] = []
    descriptors: Annotated[list[Vector], Field(max_length=100, description="Vectors as they are")] = []


class PersonQuery(Examples):
    """A person looked for."""

    saved: Annotated[Name | None, Field(description="The name of a saved person")] = None
    name: Annotated[Name | None, Field(description="What to call them in the answer")] = None


class FaceIds(_Strict):
    """Faces found by POST /faces."""

    faces: Annotated[list[str], Field(min_length=1, max_length=200)]


class SearchQuery(_Strict):
    """Who is looked for, and which photos may be answers."""

    people: Annotated[list[PersonQuery], Field(min_length=1, max_length=MOST_PEOPLE)]
    without: Annotated[list[PersonQuery], Field(max_length=MOST_PEOPLE)] = []
    at_least: Annotated[
        int | None, Field(ge=0, le=MOST_PEOPLE, description="People a photo must have; 1 by default")
    ] = None
    only: Annotated[bool, Field(description="Nobody else may be in the photo")] = False
    after: Annotated[Date | None, Field(description="Taken then or later: 2019, 2019-07, 2019-07-14")] = None
    before: Annotated[Date | None, Field(description="Taken before")] = None
    folder: Annotated[str | None, Field(max_length=4096, description="In this folder or below")] = None
    min_faces: Annotated[int | None, Field(ge=0, le=100_000)] = None
    max_faces: Annotated[int | None, Field(ge=0, le=100_000)] = None
    mode: Literal["exact", "fast", "set"] = "exact"
    k: Annotated[int, Field(ge=1, le=200, description="Hits per page")] = 50
    cursor: Annotated[str | None, Field(max_length=200, description="From the page before")] = None


class NewPerson(Examples):
    """A person to be kept; a known name gets more examples."""

    name: Name


class RenameQuery(_Strict):
    """Another name for a person."""

    name: Name


class MergeQuery(_Strict):
    """People who are the same person."""

    others: Annotated[list[Name], Field(min_length=1, max_length=100)]


class IndexQuery(_Strict):
    """What an index run shall look at."""

    folders: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=4096)]],
        Field(max_length=100, description="Folders on the server; none: those indexed before"),
    ] = []
    prune: Annotated[bool, Field(description="Remove photos whose files are gone")] = False
    retry: Annotated[bool, Field(description="Look again at files that failed before")] = False


class FolderQuery(_Strict):
    """A folder whose photos shall be forgotten."""

    folder: Annotated[str, StringConstraints(min_length=1, max_length=4096)]


class ForgetQuery(_Strict):
    """Forgetting everything needs these very words."""

    confirm: Literal["forget everything"]


class SessionQuery(_Strict):
    """The token that `setnet serve` printed."""

    token: Annotated[str, StringConstraints(max_length=1000)]


class Face(BaseModel):
    """A face in an uploaded image."""

    id: str
    box: Box
    score: float
    quality: dict[str, float]


class FacesAnswer(BaseModel):
    """An uploaded image's faces, from left to right."""

    width: int
    height: int
    faces: list[Face]
    expires_in: float
    preview: str | None


class PhotoFaceAnswer(BaseModel):
    """A face of a photo in the library; `person` is a saved person it looks like."""

    box: Box
    score: float | None = None
    quality: dict[str, float] | None = None
    person: str | None = None
    similarity: float | None = None


class PhotoAnswer(BaseModel):
    """A photo of the library."""

    id: str
    name: str
    folder: str
    version: str
    taken: str | None
    width: int
    height: int
    bytes: int
    faces: list[PhotoFaceAnswer]


class PhotosAnswer(BaseModel):
    """Some photos of the library, in the order they came into it."""

    photos: list[PhotoAnswer]
    cursor: str | None


class Match(BaseModel):
    """A person of the query found in a photo."""

    person: int
    name: str
    face: int
    similarity: float
    box: Box


class Hit(BaseModel):
    """A photo of the answer."""

    photo: PhotoAnswer
    score: float
    matches: list[Match]


class SearchAnswer(BaseModel):
    """Photos with most of the people first."""

    hits: list[Hit]
    people: list[str]
    searched: int
    seconds: dict[str, float]
    warnings: list[str]
    cursor: str | None


class PersonAnswer(BaseModel):
    """A saved person."""

    name: str
    examples: int
    added: float
    has_picture: bool


class PeopleAnswer(BaseModel):
    """The saved people, by name."""

    people: list[PersonAnswer]


class ProblemAnswer(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, Any]] | None = None
