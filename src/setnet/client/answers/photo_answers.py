"""What answers of the API look like: the JSON of the library's results, plus what only a server knows.

Answers are written by the results' own `to_dict`; these models describe them for the OpenAPI page, and the
tests validate the answers of the server and of the command line against them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from setnet.client.answers.base_answer import Answer
from setnet.client.answers.people_answers import PersonAnswer

Corners = Annotated[list[float], Field(min_length=4, max_length=4, description="x0, y0, x1, y1 in pixels")]


class FaceAnswer(Answer):
    """A face: one of an upload has an `id`, one of a photo the saved person it looks like."""

    box: Corners
    score: float | None = None
    quality: dict[str, float] | None = None
    id: str | None = None
    person: str | None = None
    similarity: float | None = None
    probability: float | None = None
    sure: bool | None = None
    at: Annotated[float | None, Field(description="In a video: the second of the best picture")] = None
    seen: Annotated[float | None, Field(description="In a video: for how many seconds")] = None
    track: Annotated[
        list[list[float]] | None, Field(description="In a video: second, x0, y0, x1, y1 of each look")
    ] = None


class FacesAnswer(Answer):
    """An uploaded image's faces, from left to right."""

    width: int
    height: int
    faces: list[FaceAnswer]
    expires_in: float
    preview: str | None


class FaceGroupsAnswer(Answer):
    """Ids of faces, one list per person."""

    groups: list[list[str]]


class _PhotoFields(Answer):
    photo: Annotated[str, Field(description="The path of the file")]
    id: str
    name: str
    folder: str
    version: Annotated[str, Field(description="Changes with the file's content")]
    taken: str | None
    width: int
    height: int
    bytes: int
    kind: Annotated[Literal["photo", "video"], Field(description="A photo, or a shot of a video")]
    from_: Annotated[float | None, Field(alias="from", description="A shot's first second")]
    to: Annotated[float | None, Field(description="A shot's last second")]
    taken_from: Annotated[
        Literal["exif", "name", "file"] | None,
        Field(description="Where `taken` is from: the camera, the file's name, or its time on the disk"),
    ]
    note: Annotated[str | None, Field(description="What could not be read of the file")]
    external_id: Annotated[str | None, Field(description="The id that another program gave it")]


class PhotoAnswer(_PhotoFields):
    """A photo of the library."""

    faces: list[FaceAnswer]


class ItemChangeAnswer(Answer):
    """A photo or person that was added, changed or removed."""

    kind: Literal["photo", "person"]
    id: str
    what: Literal["added", "changed", "removed"]


class FeedAnswer(Answer):
    """What changed, in order."""

    changes: list[ItemChangeAnswer]
    cursor: Annotated[str, Field(description="For the next call")]
    more: Annotated[bool, Field(description="Whether there is more behind the cursor already")]


class PhotosAnswer(Answer):
    """Some photos of the library, latest indexed first."""

    photos: list[PhotoAnswer]
    cursor: str | None


class MonthAnswer(Answer):
    """How many photos were taken in a month; of no known time when `month` is null."""

    month: Annotated[str | None, Field(description="As 2019-07")]
    photos: int


class TimelineAnswer(Answer):
    """The months of all photos, the latest first."""

    months: list[MonthAnswer]
    total: int


class ShotsAnswer(Answer):
    """The shots of the video that a shot is of, in order, with who is in them."""

    seconds: Annotated[float, Field(description="Of the video, as far as it was read")]
    shots: list[PhotoAnswer]


class MatchAnswer(Answer):
    """A person of the query found in a photo."""

    person: str
    similarity: float
    face: Annotated[int, Field(description="The number of the face in the photo, from 0")]
    box: Corners
    probability: Annotated[float, Field(description="That the face is this person's, 0 to 1")]
    sure: Annotated[bool, Field(description="Next to no stranger is as similar; else it is a guess")]


class SamePhotoAnswer(Answer):
    """Another photo of the same moment."""

    photo: str
    id: str


class HitAnswer(_PhotoFields):
    """A photo that was found."""

    score: float
    matches: list[MatchAnswer]
    faces: Annotated[int, Field(description="How many faces are in the photo")]
    boxes: list[Corners]
    copies: Annotated[list[SamePhotoAnswer], Field(description="Collapsed into it: the same content")]
    others: Annotated[list[SamePhotoAnswer], Field(description="Collapsed into it: the same burst")]


class TotalAnswer(Answer):
    """How many photos have exactly this many of the people."""

    matched: int
    photos: int
    sure: Annotated[int, Field(description="Those of them in which all these matches are sure")]


class ThresholdAnswer(Answer):
    """From which similarity on a person is recognised."""

    person: str
    sure: float
    maybe: float


class SearchAnswer(Answer):
    """Photos with most of the people first."""

    hits: list[HitAnswer]
    people: list[str]
    without: list[str]
    searched: int
    seconds: dict[str, float]
    warnings: list[str]
    totals: Annotated[
        list[TotalAnswer] | None, Field(description="Of the whole answer, most people first, if asked for")
    ]
    faces_searched: Annotated[int, Field(description="The more, the stricter what is sure")]
    thresholds: list[ThresholdAnswer]
    unsure: Annotated[list[str], Field(description="People of whom no face of the library is a sure match")]
    cursor: Annotated[str | None, Field(description="Send it to get the next page; null on the last")] = None


class ProblemAnswer(Answer):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, Any]] | None = None
    person: Annotated[
        PersonAnswer | None, Field(description="With 409, where a name is taken: whose it is")
    ] = None
