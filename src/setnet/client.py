"""A client of the REST API: its calls as methods, its answers typed, what the server refuses raised.

Answers are the dataclasses of `setnet.library` wherever the server sends these as they are. The models here
are for what differs: photos without their stored bytes, pages with cursors, and what only a server knows.
"""

from __future__ import annotations

import os
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import update_wrapper
from hashlib import blake2b
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Concatenate,
    Generic,
    Literal,
    NotRequired,
    ParamSpec,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)
from urllib.parse import quote

from setnet.errors import MissingExtraError, SetNetError
from setnet.library import (
    Change,
    Group,
    GroupingReport,
    GroupTotal,
    GroupTotals,
    PeopleTogether,
    Person,
    PersonThresholds,
    SavedSearch,
    Suggestion,
)

try:
    import httpx
    from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
except ModuleNotFoundError as error:
    raise MissingExtraError(__name__, error.name, "client") from error

__all__ = ["AsyncClient", "Client", "Requests", "ServerError"]

Corners = Annotated[list[float], Field(min_length=4, max_length=4, description="x0, y0, x1, y1 in pixels")]
FaceNumber = Annotated[int, Field(description="The number of the face in the photo, from 0")]
Cursor = Annotated[str | None, Field(description="Send it to get the next page; null on the last")]


class Answer(BaseModel):
    """An answer of the server; fields that a newer server adds are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)


# People


@dataclass(frozen=True, slots=True)
class ListedPerson(Person):
    """A saved person in the list of all, with as many photos as /people/{name}/photos lists."""

    photos: int = 0


@dataclass(frozen=True, slots=True)
class SavedPerson(Person):
    """A person who was saved, with remarks for the user."""

    notes: tuple[str, ...] = ()


class People(Answer):
    """The saved people, by name."""

    people: list[ListedPerson]


# Photos


class Face(Answer):
    """A face, with the saved person it looks like; one of an upload has an `id`."""

    box: Corners
    score: float | None = None
    quality: dict[str, float] | None = None
    id: str | None = None
    group: Annotated[str | None, Field(description="In a photo: the group of faces that it is in")] = None
    person: str | None = None
    similarity: float | None = None
    probability: float | None = None
    sure: bool | None = None
    at: Annotated[float | None, Field(description="In a video: the second of the best picture")] = None
    seen: Annotated[float | None, Field(description="In a video: for how many seconds")] = None
    track: Annotated[
        list[list[float]] | None, Field(description="In a video: second, x0, y0, x1, y1 of each look")
    ] = None


class UploadedFaces(Answer):
    """An uploaded image's faces, from left to right."""

    width: int
    height: int
    faces: list[Face]
    expires_in: float
    preview: str | None


class PhotoTag(Answer):
    """A person whom the user sees in a photo."""

    person: str
    photo_id: str
    box: Corners | None
    face: Annotated[int | None, Field(description="The number of the face at the box, if there is one")]


class SamePhoto(Answer):
    """Another photo of the same moment."""

    photo: str
    id: str


class Photo(Answer):
    """A photo of the library."""

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
    colour: Annotated[
        str | None, Field(description="Its mean, as #a1b2c3, to show until its picture is there")
    ]
    faces: list[Face]
    tags: Annotated[list[PhotoTag], Field(description="Of a photo asked for by its id")] = []
    copies: Annotated[list[SamePhoto], Field(description="Collapsed into it: the same content")] = []
    others: Annotated[list[SamePhoto], Field(description="Collapsed into it: the same burst")] = []


class Photos(Answer):
    """Some photos of the library."""

    photos: list[Photo]
    cursor: Cursor


class AddedPhoto(Answer):
    """A photo that was sent, or why it was not added."""

    photo: Photo | None
    error: str | None


class AddedPhotos(Answer):
    """Photos that were sent, in their order."""

    photos: list[AddedPhoto]


class PersonPhoto(Photo):
    """A photo with a person in it."""

    face: Annotated[int | None, Field(description="Null: a tag says so, and no face is theirs")]
    sure: Annotated[bool, Field(description="Surely theirs, or confirmed; else by their group alone")]


class PersonPhotos(Answer):
    """Photos of a person, the latest taken first."""

    photos: list[PersonPhoto]
    total: int
    sure: int
    cursor: Cursor


# Search


class Match(Answer):
    """A person of the query found in a photo."""

    person: str
    similarity: Annotated[float, Field(description="0 where no face was compared")]
    face: Annotated[int | None, Field(description="Null: a tag says so, and no face is theirs")]
    box: Annotated[Corners | None, Field(description="Of the face, else of the tag, if it has one")]
    probability: Annotated[float, Field(description="That the face is this person's, 0 to 1")]
    sure: Annotated[bool, Field(description="Next to no stranger is as similar; else it is a guess")]


class Hit(Photo):
    """A photo that was found."""

    score: float
    matches: list[Match]


class Hits(Answer):
    """Photos with most of the people first."""

    hits: list[Hit]
    people: list[str]
    without: list[str]
    searched: int
    seconds: dict[str, float]
    warnings: list[str]
    totals: Annotated[
        list[GroupTotal] | None, Field(description="Of the whole answer, most people first, if asked for")
    ]
    faces_searched: Annotated[int, Field(description="The more, the stricter what is sure")]
    thresholds: list[PersonThresholds]
    unsure: Annotated[list[str], Field(description="People of whom no face of the library is a sure match")]
    cursor: Cursor = None


# Groups


class Togethers(Answer):
    """Who is surely in photos with a person, the most frequent first."""

    together: list[PeopleTogether]
    total: int


class SavedSearches(Answer):
    """The saved searches, by name."""

    searches: list[SavedSearch]


class Groups(Answer):
    """Groups, the largest first; `totals` counts those of at least `min_faces` faces."""

    groups: list[Group]
    cursor: Cursor
    totals: GroupTotals
    grouped_at: Annotated[datetime | None, Field(description="Null: never yet")]
    ungrouped_faces: Annotated[int, Field(description="Faces that came since")]


class Member(Answer):
    """A face of a group."""

    photo: str
    face: FaceNumber
    box: Corners
    path: str
    taken: str | None


@dataclass(frozen=True, slots=True)
class GroupMembers(Group):
    """A group with some of its faces, the latest taken first."""

    members: tuple[Member, ...] = ()
    cursor: Cursor = None


class Suggestions(Answer):
    """Suggestions, the most probable first."""

    suggestions: list[Suggestion]


# Index runs and the server


class Progress(Answer):
    """An index run under way: `done` of `total` files, unchanged ones not counted."""

    stage: str
    done: int
    total: int
    unchanged: int
    faces: int
    failed: int
    seconds: float
    minutes: Annotated[float, Field(description="Of videos, read so far")]
    rate: Annotated[float, Field(description="Photos per second")]
    seconds_left: float | None


class Failure(Answer):
    """A file that could not be read, and why."""

    photo: str
    reason: str


class FolderFailure(Answer):
    """A folder that could not be read, and why."""

    folder: str
    reason: str


class Failures(Answer):
    """Files that could not be read."""

    failures: list[Failure]
    total: int
    cursor: Cursor


class Report(Answer):
    """What an index run did; long lists are cut, their counts are whole."""

    scanned: int
    unchanged: int
    added: int
    changed: int
    moved: int
    copied: int
    removed: int
    faces: int
    interrupted: bool
    seconds: float
    workers: int
    shots: Annotated[int, Field(description="Found in videos")]
    minutes: Annotated[float, Field(description="Of videos, that were read")]
    vanished: list[str]
    vanished_count: int
    failed: list[Failure]
    failed_count: int
    unreadable: list[FolderFailure]
    unreadable_count: int
    skipped: list[Failure]
    skipped_count: int
    prune_refused: bool
    excluded: Annotated[list[str], Field(description="The patterns in use")]


class Run(Answer):
    """The latest run, which indexed or only grouped."""

    state: Literal["idle", "running", "stopping", "stopped", "done", "failed"]
    folders: list[str]
    started: datetime | None
    progress: Progress | None
    report: Report | None
    grouping: GroupingReport | None
    error: str | None


class Limits(Answer):
    """What the server takes at most."""

    upload_bytes: int
    pixels: int
    people: int


class Status(Answer):
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
    shots: Annotated[int, Field(description="Photos that are parts of videos")]
    folders: list[str]
    settings: dict[str, Any]
    dim: int
    threshold: float
    modes: list[str]
    index: Run
    limits: Limits
    token: Annotated[bool, Field(description="Whether requests need one")]
    access: Annotated[
        Literal["all", "read"], Field(description="What this client may do: all, or only look and search")
    ]


# What requests take


class FaceOfPhoto(TypedDict):
    """A face of a photo in the library: the photo's id, and the number of the face from 0."""

    photo: str
    face: int


class NewFace(TypedDict):
    """A face that your program described by the library's model: x0, y0, x1, y1, and the descriptor."""

    box: Sequence[float]
    descriptor: Sequence[float]
    score: NotRequired[float]


class NewPhoto(TypedDict, total=False):
    """A photo to add: the bytes of an image, or its faces with an external id, width and height."""

    image: bytes
    external_id: str
    faces: Sequence[NewFace]
    width: int
    height: int
    taken: str


class PersonFields(TypedDict, total=False):
    """Somebody to look for, by any of these or several together."""

    saved: str
    group: str
    faces: Sequence[str]
    photo_faces: Sequence[FaceOfPhoto]
    images: Sequence[str]
    descriptors: Sequence[Sequence[float]]
    name: str


PersonLike = str | Sequence[str] | PersonFields
"""A saved person's name; a list of face ids that `find_faces` returned; or the fields of the API."""


class SearchConditions(TypedDict, total=False):
    """What `POST /search` takes besides the people."""

    without: Sequence[PersonLike]
    at_least: int
    only: bool
    sure: bool
    min_similarity: float
    totals: bool
    collapse: bool
    after: str
    before: str
    folder: str
    min_faces: int
    max_faces: int
    kind: Literal["photo", "video"]
    mode: Literal["exact", "fast", "set"]
    limit: int


class PersonChanges(TypedDict, total=False):
    """What can be changed of a person; what is left out stays as it is."""

    name: str
    aliases: Sequence[str]
    note: str
    cover: int


class GroupConditions(TypedDict, total=False):
    """Which groups to list."""

    state: Literal["unnamed", "named", "hidden", "all"]
    min_faces: int
    max_faces: int
    limit: int
    cursor: str


IfExists = Literal["ask", "add", "refuse"]
P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")
_HERE = "http://localhost:8422"
_LOOK_SECONDS = 0.5
_UNDER_WAY = ("running", "stopping")
_Page = TypeVar("_Page", Hits, Photos)


class ServerError(SetNetError):
    """A request was refused, or the server cannot be reached.

    Attributes
    ----------
    status, code
        The HTTP status and the server's word for the error, such as "name_taken"; 0 and "unreachable" when
        there was no answer.
    """

    def __init__(self, message: str, status: int = 0, code: str = "unreachable") -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request that was not sent yet, and how the bytes of its answer are read."""

    method: str
    path: str
    read: Callable[[bytes], T]
    body: Mapping[str, object] | bytes | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    def then(self, change: Callable[[T], U]) -> Call[U]:
        """Return the same request, whose answer is changed after it was read."""
        return Call(self.method, self.path, lambda data: change(self.read(data)), self.body, self.params)

    def to_httpx(self) -> dict[str, Any]:
        """Return what httpx sends."""
        given: dict[str, Any] = {}
        if isinstance(self.body, bytes):
            given = {"content": self.body, "headers": {"Content-Type": "application/octet-stream"}}
        elif self.body is not None:
            given = {"json": {name: value for name, value in self.body.items() if value is not None}}
        known = {name: value for name, value in self.params.items() if value is not None}
        return given | {"method": self.method, "url": self.path, "params": known}


def _ask(
    answer: type[T],
    method: str,
    path: str,
    body: Mapping[str, object] | bytes | None = None,
    params: Mapping[str, Any] | None = None,
) -> Call[T]:
    """Return a request whose answer is JSON of this type."""
    return Call(method, path, TypeAdapter(answer).validate_json, body, params or {})


class _Request(Generic[P, T]):
    """A method that makes a request: `Client` sends it and returns the answer, `AsyncClient` is awaited."""

    def __init__(self, make: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self._make = make
        update_wrapper(self, make)  # type: ignore[arg-type]

    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Awaitable[T]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    def __get__(self, client: Client | AsyncClient | None, owner: type) -> object:
        """Return what calls the method of this client."""
        if client is None:
            return self
        return lambda *given, **named: client.send(self._make(client, *given, **named))


class Requests:
    """What a server can be asked: `Client` returns the answers, those of `AsyncClient` are awaited."""

    @_Request
    def status(self) -> Call[Status]:
        """Return what the library holds and what the server takes at most."""
        return _ask(Status, "GET", "/status")

    # photos

    @_Request
    def find_faces(self, image: bytes | str | os.PathLike[str]) -> Call[UploadedFaces]:
        """Find the faces in an image; their ids serve in `search` and `save_person` for half an hour."""
        data = image if isinstance(image, bytes) else Path(image).read_bytes()
        return _ask(UploadedFaces, "POST", "/faces", data)

    @_Request
    def search(
        self,
        people: Sequence[PersonLike],
        cursor: str | None = None,
        **conditions: Unpack[SearchConditions],
    ) -> Call[Hits]:
        """Find the photos that contain these people: one page, whose `cursor` leads to the next."""
        without = [_person(person) for person in conditions.get("without", ())]
        body = {**conditions, "people": [_person(p) for p in people], "without": without, "cursor": cursor}
        return _ask(Hits, "POST", "/search", body)

    @_Request
    def searches(self) -> Call[list[SavedSearch]]:
        """Return the saved searches, by name."""
        return _ask(SavedSearches, "GET", "/searches").then(lambda found: found.searches)

    @_Request
    def save_search(
        self, name: str, people: Sequence[str], **conditions: Unpack[SearchConditions]
    ) -> Call[SavedSearch]:
        """Keep a search for saved people under a name."""
        return _ask(SavedSearch, "PUT", f"/searches/{_word(name)}", {**conditions, "people": list(people)})

    @_Request
    def remove_search(self, name: str) -> Call[Change]:
        """Remove a saved search, which `undo` takes back."""
        return _ask(Change, "DELETE", f"/searches/{_word(name)}")

    @_Request
    def photo_at(self, path: str | os.PathLike[str]) -> Call[Photo | None]:
        """Return the photo of a file on the server's machine, or None if it is not in the library."""
        return _ask(Photos, "GET", "/photos", params={"path": os.fspath(path)}).then(_first)

    @_Request
    def find_copies(self, file: str | os.PathLike[str]) -> Call[list[Photo]]:
        """Return the photos with the content of a file of this machine, wherever they are."""
        content = blake2b(Path(file).read_bytes(), digest_size=16).hexdigest()
        return _ask(Photos, "GET", "/photos", params={"content": content}).then(lambda found: found.photos)

    @_Request
    def photo_with_external_id(self, external_id: str) -> Call[Photo | None]:
        """Return the photo that your program knows by this id, or None."""
        return _ask(Photos, "GET", "/photos", params={"external_id": external_id}).then(_first)

    @_Request
    def add_photos(self, photos: Sequence[NewPhoto], descriptor: str | None = None) -> Call[AddedPhotos]:
        """Add up to 200 photos: images, or faces with descriptors of this model, which is the library's."""
        sent = [
            {**one, "image": b64encode(one["image"]).decode()} if "image" in one else one for one in photos
        ]
        return _ask(AddedPhotos, "POST", "/photos", {"photos": sent, "descriptor": descriptor})

    @_Request
    def set_external_id(self, photo_id: str, external_id: str | None) -> Call[Photo]:
        """Give a photo the id by which your program knows it, or take it away with None."""
        body = {"external_id": external_id}
        return _ask(Photo, "PUT", f"/photos/{_word(photo_id)}/external-id", body)

    @_Request
    def list_photos(self, limit: int = 200, cursor: str | None = None) -> Call[Photos]:
        """Return photos of the library, a page of them, the latest indexed first."""
        return _ask(Photos, "GET", "/photos", params={"limit": limit, "cursor": cursor})

    @_Request
    def photo(self, photo_id: str) -> Call[Photo]:
        """Return a photo with its faces and the saved people they look like."""
        return _ask(Photo, "GET", f"/photos/{_word(photo_id)}")

    @_Request
    def thumbnail(self, photo_id: str, size: int = 320) -> Call[bytes]:
        """Return a photo as a small JPEG."""
        return Call("GET", f"/photos/{_word(photo_id)}/thumbnail", bytes, params={"size": size})

    # people

    @_Request
    def people(self) -> Call[People]:
        """Return the saved people."""
        return _ask(People, "GET", "/people")

    @_Request
    def save_person(self, name: str, faces: Sequence[str], if_exists: IfExists = "ask") -> Call[SavedPerson]:
        """Save a person by example faces that `find_faces` returned."""
        body = {"name": name, "faces": list(faces), "if_exists": if_exists}
        return _ask(SavedPerson, "POST", "/people", body)

    @_Request
    def change_person(self, person: str, **changes: Unpack[PersonChanges]) -> Call[Person]:
        """Change a person, given by name or id."""
        return _ask(Person, "PATCH", f"/people/{_word(person)}", changes)

    @_Request
    def remove_person(self, person: str, *, for_good: bool = False) -> Call[Change]:
        """Remove a person, which `undo` takes back; ``for_good`` deletes them without a trace."""
        return _ask(Change, "DELETE", f"/people/{_word(person)}", params={"for_good": for_good})

    @_Request
    def person_photos(self, person: str) -> Call[PersonPhotos]:
        """Return the photos of a saved person, the latest first."""
        return _ask(PersonPhotos, "GET", f"/people/{_word(person)}/photos")

    @_Request
    def together(self, person: str, min_people: int = 2, limit: int = 50) -> Call[Togethers]:
        """Return the sets of two to five people with this person that photos surely show, and how many."""
        params = {"min_people": min_people, "limit": limit}
        return _ask(Togethers, "GET", f"/people/{_word(person)}/together", params=params)

    @_Request
    def confirm(self, person: str, photo_id: str, face: int) -> Call[Person]:
        """Say that a face of a photo is this person's."""
        return _ask(Person, "POST", f"/people/{_word(person)}/confirm", {"photo": photo_id, "face": face})

    @_Request
    def reject(self, person: str, photo_id: str, face: int) -> Call[SavedPerson]:
        """Say that a face of a photo is not this person's."""
        body = {"photo": photo_id, "face": face}
        return _ask(SavedPerson, "POST", f"/people/{_word(person)}/reject", body)

    @_Request
    def tag(self, person: str, photo_id: str, box: Sequence[float] | None = None) -> Call[Person]:
        """Say that a person is in a photo, also where no face was found."""
        body = {"person": person, "box": None if box is None else list(box)}
        return _ask(Person, "POST", f"/photos/{_word(photo_id)}/tags", body)

    @_Request
    def untag(self, person: str, photo_id: str) -> Call[Person]:
        """Take the tag of a person in a photo back."""
        return _ask(Person, "DELETE", f"/photos/{_word(photo_id)}/tags", params={"person": person})

    @_Request
    def undo(self, change: int | None = None) -> Call[Change]:
        """Undo a change of people, by default the latest."""
        return _ask(Change, "POST", "/changes/undo", {"change": change})

    # groups of unknown faces

    @_Request
    def groups(self, **conditions: Unpack[GroupConditions]) -> Call[Groups]:
        """Return groups of faces that are probably one person's each, the largest first."""
        return _ask(Groups, "GET", "/groups", params=conditions)

    @_Request
    def group(self, group_id: str) -> Call[GroupMembers]:
        """Return the faces of a group."""
        return _ask(GroupMembers, "GET", f"/groups/{_word(group_id)}")

    @_Request
    def name_group(self, group_id: str, name: str, if_exists: IfExists = "ask") -> Call[SavedPerson]:
        """Say who a group is."""
        body = {"name": name, "if_exists": if_exists}
        return _ask(SavedPerson, "POST", f"/groups/{_word(group_id)}/name", body)

    @_Request
    def hide_group(self, group_id: str, hidden: bool = True) -> Call[Group]:
        """Say that a group is nobody you know, or take that back."""
        return _ask(Group, "PATCH", f"/groups/{_word(group_id)}", {"hidden": hidden})

    @_Request
    def suggestions(self, person: str | None = None) -> Call[Suggestions]:
        """Return groups that may be a saved person's."""
        return _ask(Suggestions, "GET", "/suggestions", params={"person": person})

    # index runs

    @_Request
    def index(
        self,
        folders: Sequence[str] = (),
        *,
        prune: bool = False,
        prune_many: bool = False,
        retry: bool = False,
    ) -> Call[Run]:
        """Start to index folders of the server's machine; none: those indexed before."""
        body = {"folders": list(folders), "prune": prune, "prune_many": prune_many, "retry": retry}
        return _ask(Run, "POST", "/index", body)

    @_Request
    def index_state(self) -> Call[Run]:
        """Return the state of the latest index run."""
        return _ask(Run, "GET", "/index")

    @_Request
    def stop_index(self) -> Call[Run]:
        """Stop the index run; the next one goes on from there."""
        return _ask(Run, "DELETE", "/index")

    @_Request
    def failures(self, limit: int = 200, cursor: str | None = None) -> Call[Failures]:
        """Return files that could not be read, with the reasons."""
        return _ask(Failures, "GET", "/failures", params={"limit": limit, "cursor": cursor})


class Client(Requests):
    """A server that `setnet serve` runs.

    A refused request raises `ServerError` with the server's own words. Connections are kept open between
    requests.

    Parameters
    ----------
    url
        Where it is.
    token
        What it printed when it started, where it needs one.
    timeout
        Seconds that one request may take.
    """

    def __init__(self, url: str = _HERE, token: str | None = None, timeout: float = 60.0) -> None:
        self._http = httpx.Client(**_connection(url, token, timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """Send a request and return its answer."""
        with _plain_errors(self._http):
            return call.read(_check_status(self._http.request(**call.to_httpx())).content)

    def hits(self, people: Sequence[PersonLike], **conditions: Unpack[SearchConditions]) -> Iterator[Hit]:
        """Yield all photos that contain these people, the best first, page by page."""
        for page in _pages(lambda cursor: self.search(people, cursor, **conditions)):
            yield from page.hits

    def photos(self) -> Iterator[Photo]:
        """Yield all photos of the library, the latest indexed first."""
        for page in _pages(lambda cursor: self.list_photos(cursor=cursor)):
            yield from page.photos

    def wait_for_index(self, progress: Callable[[Run], None] | None = None) -> Run:
        """Return when no index run is under way; ``progress`` is called with its state twice a second."""
        while (state := self.index_state()).state in _UNDER_WAY:
            if progress is not None:
                progress(state)
            time.sleep(_LOOK_SECONDS)
        return state

    def download_photo(self, photo_id: str, place: str | os.PathLike[str]) -> Path:
        """Write the file of a photo to a place of this machine, whole or not at all, and return its path."""
        place = Path(place)
        part = place.with_name(f".{place.name}.part")
        try:
            with (
                _plain_errors(self._http),
                self._http.stream("GET", f"/photos/{_word(photo_id)}/file") as response,
                part.open("wb") as file,
            ):
                if response.is_error:
                    response.read()
                for piece in _check_status(response).iter_bytes():
                    file.write(piece)
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)
        return place


class AsyncClient(Requests):
    """The same for asyncio: ``await client.search(["Anna"])``, ``async for hit in client.hits(["Anna"])``."""

    def __init__(self, url: str = _HERE, token: str | None = None, timeout: float = 60.0) -> None:
        self._http = httpx.AsyncClient(**_connection(url, token, timeout))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """Send a request and return its answer."""
        with _plain_errors(self._http):
            return call.read(_check_status(await self._http.request(**call.to_httpx())).content)

    async def hits(
        self, people: Sequence[PersonLike], **conditions: Unpack[SearchConditions]
    ) -> AsyncIterator[Hit]:
        """Yield all photos that contain these people, the best first, page by page."""
        page = await self.search(people, **conditions)
        while True:
            for hit in page.hits:
                yield hit
            if page.cursor is None:
                return
            page = await self.search(people, page.cursor, **conditions)


def _connection(url: str, token: str | None, timeout: float) -> dict[str, Any]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return {"base_url": f"{url.rstrip('/')}/api/v1", "headers": headers, "timeout": timeout}


@contextmanager
def _plain_errors(http: httpx.Client | httpx.AsyncClient) -> Iterator[None]:
    """Turn a server that cannot be reached into an error of ours."""
    try:
        yield
    except httpx.HTTPError as error:
        raise ServerError(f"no answer from {http.base_url.copy_with(path='/')}: {error}") from error


def _check_status(response: httpx.Response) -> httpx.Response:
    if response.is_success:
        return response
    try:
        problem = response.json()
        detail, code = str(problem["detail"]), str(problem["code"])
    except (ValueError, KeyError, TypeError):  # not setnet's: of a proxy, perhaps
        detail, code = response.text[:200] or response.reason_phrase, "error"
    raise ServerError(detail, response.status_code, code)


def _pages(read: Callable[[str | None], _Page]) -> Iterator[_Page]:
    """Yield all pages, each read with the cursor that the one before it had."""
    page = read(None)
    yield page
    while page.cursor is not None:
        page = read(page.cursor)
        yield page


def _first(found: Photos) -> Photo | None:
    return found.photos[0] if found.photos else None


def _person(person: PersonLike) -> dict[str, Any]:
    """Return a person of a query as the API takes one.

    >>> _person("Anna"), _person(["f-1", "f-2"]), _person({"group": "g17"})
    ({'saved': 'Anna'}, {'faces': ['f-1', 'f-2']}, {'group': 'g17'})
    """
    if isinstance(person, str):
        return {"saved": person}
    return dict(person) if isinstance(person, dict) else {"faces": list(person)}


def _word(text: str) -> str:
    return quote(text, safe="")
