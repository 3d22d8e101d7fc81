"""What requests to the API look like; the OpenAPI page is made from these."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MOST_PEOPLE = 16

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
# Lists that may be long end at their first fault: a million faults take gigabytes to describe.
Vector = Annotated[list[float], Field(min_length=1, max_length=4096, fail_fast=True)]
PhotoId = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")]
Date = Annotated[str, StringConstraints(min_length=4, max_length=32)]


class Strict(BaseModel):
    """A request body: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class FaceReference(Strict):
    """A face of a photo in the library."""

    photo: PhotoId
    face: Annotated[int, Field(ge=0, le=100_000, description="Its number in the photo, from 0")]


class Examples(Strict):
    """Where the example faces of a person come from; several sources may be given together."""

    faces: Annotated[list[str], Field(max_length=32, description="Face ids of POST /faces")] = []
    photo_faces: Annotated[list[FaceReference], Field(max_length=32)] = []
    images: Annotated[
        list[str], Field(max_length=4, description="Base64 of images; the largest face is taken")
    ] = []
    descriptors: Annotated[
        list[Vector], Field(max_length=100, fail_fast=True, description="Vectors as they are")
    ] = []


class PersonQuery(Examples):
    """A person looked for."""

    saved: Annotated[Name | None, Field(description="The name of a saved person")] = None
    group: Annotated[
        str | None, StringConstraints(pattern=r"^g[1-9][0-9]{0,17}$"), Field(description="A group, as g17")
    ] = None
    name: Annotated[Name | None, Field(description="What to call them in the answer")] = None


class FaceIds(Strict):
    """Faces found by POST /faces."""

    faces: Annotated[list[str], Field(min_length=1, max_length=200)]


class SearchQuery(Strict):
    """The people to look for, and conditions on the photos."""

    people: Annotated[list[PersonQuery], Field(min_length=1, max_length=MOST_PEOPLE)]
    without: Annotated[list[PersonQuery], Field(max_length=MOST_PEOPLE)] = []
    at_least: Annotated[
        int | None, Field(ge=0, le=MOST_PEOPLE, description="People a photo must have; 1 by default")
    ] = None
    only: Annotated[bool, Field(description="Nobody else may be in the photo")] = False
    sure: Annotated[bool, Field(description="Only sure matches count")] = False
    min_similarity: Annotated[
        float | None,
        Field(
            ge=-1,
            le=1,
            description="From which similarity a face matches; by default it follows from the "
            "number of examples and of faces searched",
        ),
    ] = None
    totals: Annotated[
        bool, Field(description="Also count the photos with all of the people, all but one and so on")
    ] = False
    collapse: Annotated[
        bool,
        Field(description="Make one hit of copies and bursts on a page: see `copies` and `others` of hits"),
    ] = False
    after: Annotated[Date | None, Field(description="Taken then or later: 2019, 2019-07, 2019-07-14")] = None
    before: Annotated[Date | None, Field(description="Taken before")] = None
    folder: Annotated[str | None, Field(max_length=4096, description="In this folder or below")] = None
    min_faces: Annotated[int | None, Field(ge=0, le=100_000)] = None
    max_faces: Annotated[int | None, Field(ge=0, le=100_000)] = None
    kind: Annotated[
        Literal["photo", "video"] | None, Field(description="Only photos, or only shots of videos")
    ] = None
    mode: Literal["exact", "fast", "set"] = "exact"
    k: Annotated[int, Field(ge=1, le=200, description="Hits per page")] = 50
    cursor: Annotated[str | None, Field(max_length=200, description="From the page before")] = None


class ExternalIdQuery(Strict):
    """The id by which another program knows a photo."""

    external_id: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="Null or none: the photo has none any more"),
    ] = None


class IndexQuery(Strict):
    """What an index run shall look at."""

    folders: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=4096)]],
        Field(max_length=100, description="Folders on the server; none: those indexed before"),
    ] = []
    prune: Annotated[
        bool, Field(description="Remove photos whose files are gone, if these are a tenth of all at most")
    ] = False
    prune_many: Annotated[bool, Field(description="With `prune`: remove them however many they are")] = False
    retry: Annotated[bool, Field(description="Look again at files that failed before")] = False


class FolderQuery(Strict):
    """A folder whose photos shall be forgotten."""

    folder: Annotated[str, StringConstraints(min_length=1, max_length=4096)]


class ForgetQuery(Strict):
    """Forgetting everything needs these very words."""

    confirm: Literal["forget everything"]


class SessionQuery(Strict):
    """The token that `setnet serve` printed."""

    token: Annotated[str, StringConstraints(max_length=1000)]
