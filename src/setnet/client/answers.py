"""What answers of the API look like: the JSON of the library's results, plus what only a server knows.

Answers are written by the results' own `to_dict`; these models describe them for the OpenAPI page, and the
tests validate the answers of the server and of the command line against them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Corners = Annotated[list[float], Field(min_length=4, max_length=4, description="x0, y0, x1, y1 in pixels")]


class Answer(BaseModel):
    """An answer of the server; fields that a newer server adds are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class PersonAnswer(Answer):
    """A saved person."""

    id: Annotated[str, Field(description="Stays the same whatever they are called")]
    name: str
    aliases: list[str]
    note: str
    cover: Annotated[int | None, Field(description="The example whose picture stands for them, if chosen")]
    examples: int
    added: float
    has_picture: bool
    change: Annotated[int | None, Field(description="After a change: its number, to undo it")] = None


class SavedPersonAnswer(PersonAnswer):
    """A person who was saved, with remarks for the user."""

    notes: list[str]


class ListedPersonAnswer(PersonAnswer):
    """A saved person in the list of all."""

    photos: Annotated[int, Field(description="As many as /people/{name}/photos lists")]


class PeopleAnswer(Answer):
    """The saved people, by name."""

    people: list[ListedPersonAnswer]


class ExampleAnswer(Answer):
    """An example face of a person."""

    number: Annotated[int, Field(description="Its own for as long as it is kept, whoever it belongs to")]
    origin: Literal["portrait", "confirmed", "group", "import"]
    source: Annotated[str | None, Field(description="The path of the photo it came from")]
    content: Annotated[str | None, Field(description="The hash of that photo's file")]
    box: list[float] | None
    has_picture: bool
    added: float


class ExamplesAnswer(Answer):
    """The example faces of a person, oldest first."""

    examples: list[ExampleAnswer]


class VerdictAnswer(Answer):
    """A face that was confirmed or refused."""

    id: int
    person: str
    says: Literal["yes", "no"]
    photo: Annotated[str | None, Field(description="Where the face is now; null: in no photo of the library")]
    face: int | None
    content: str
    box: list[float]
    added: float


class VerdictsAnswer(Answer):
    """What was confirmed and refused of a person."""

    verdicts: list[VerdictAnswer]


class ChangeAnswer(Answer):
    """An entry of the journal."""

    id: int
    at: float
    kind: str
    summary: str
    undoes: int | None
    undone_by: int | None


class ChangesAnswer(Answer):
    """The journal, latest first."""

    changes: list[ChangeAnswer]


class ImportAnswer(Answer):
    """What came into the library with a file of people."""

    people: int
    new: int
    examples: int
    verdicts: int
    not_found: int
    notes: list[str]
    change: int | None


class PeopleFileAnswer(Answer):
    """People as a file: what `POST /import/people` takes."""

    format: str
    version: int
    model: Annotated[str | None, Field(description="Whose descriptors are in it; null without")]
    dim: int | None
    people: list[dict[str, Any]]


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


class HealthAnswer(Answer):
    """Whether requests are accepted."""

    status: Literal["ok", "stopping"]


class ProgressAnswer(Answer):
    """An index run under way: `done` of `total` files, unchanged ones not counted."""

    stage: str
    done: int
    total: int
    unchanged: int
    faces: int
    failed: int
    seconds: float
    rate: Annotated[float, Field(description="Photos per second")]
    seconds_left: float | None


class FailureAnswer(Answer):
    """A file that could not be read, and why."""

    photo: str
    reason: str


class FolderFailureAnswer(Answer):
    """A folder that could not be read, and why."""

    folder: str
    reason: str


class FailuresAnswer(Answer):
    """Files that could not be read."""

    failures: list[FailureAnswer]
    total: int


class ReportAnswer(Answer):
    """What an index run did; long lists are cut, their counts are whole."""

    scanned: int
    unchanged: int
    added: int
    changed: int
    moved: int
    copied: int
    removed: int
    faces: int
    vanished: list[str]
    failed: list[FailureAnswer]
    unreadable: list[FolderFailureAnswer]
    interrupted: bool
    seconds: float
    scan_seconds: float
    detect_seconds: float
    describe_seconds: float
    workers: int
    vanished_count: int
    failed_count: int
    unreadable_count: int
    partial: list[FailureAnswer]
    skipped: list[FailureAnswer]
    partial_count: int
    skipped_count: int
    prune_refused: bool


class GroupingAnswer(Answer):
    """What grouping the faces by person did."""

    faces: int
    groups: int
    new_groups: int
    moved: int
    anew: bool
    interrupted: bool
    seconds: float


class IndexAnswer(Answer):
    """The latest run, which indexed or only grouped."""

    state: Literal["idle", "running", "stopping", "stopped", "done", "failed"]
    folders: list[str]
    started: Annotated[float | None, Field(description="Seconds since 1970")]
    progress: ProgressAnswer | None
    report: ReportAnswer | None
    grouping: GroupingAnswer | None
    error: str | None


class LimitsAnswer(Answer):
    """What the server takes at most."""

    upload_bytes: int
    pixels: int
    people: int


class StatusAnswer(Answer):
    """What the library holds, its settings, and the limits of the server."""

    version: str
    library: str
    photos: int
    without_faces: int
    faces: int
    timed: int
    failed: int
    unfinished: int
    people: int
    folders: list[str]
    settings: dict[str, Any]
    dim: int
    threshold: float
    modes: list[str]
    index: IndexAnswer
    limits: LimitsAnswer
    token: Annotated[bool, Field(description="Whether requests need one")]


class ForgottenAnswer(Answer):
    """How many photos' data was deleted."""

    photos: int


class FolderAnswer(Answer):
    """A folder of the server's machine."""

    path: str
    name: str


class FoldersAnswer(Answer):
    """The folders in a folder, and how many photos lie in it directly."""

    path: Annotated[str | None, Field(description="Null in the list of places to begin")]
    parent: str | None
    folders: list[FolderAnswer]
    photos: int
    has_more: Annotated[bool, Field(description="Not all of it is listed or counted")]
