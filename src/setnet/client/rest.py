"""The calls of the REST API as methods; what the server refuses is raised."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx

from setnet.client.answers import (
    Answer,
    ChangeAnswer,
    FacesAnswer,
    FailuresAnswer,
    FeedAnswer,
    GroupAnswer,
    GroupMembersAnswer,
    GroupsAnswer,
    HitAnswer,
    IndexAnswer,
    PeopleAnswer,
    PersonAnswer,
    PersonPhotosAnswer,
    PhotoAnswer,
    PhotosAnswer,
    SavedPersonAnswer,
    SearchAnswer,
    StatusAnswer,
    SuggestionsAnswer,
)
from setnet.errors import SetNetError

T = TypeVar("T", bound=Answer)
PersonLike = str | Sequence[str] | Mapping[str, Any]
"""A saved person's name; a list of face ids that `find_faces` returned; or the fields of the API."""
_LOOK_SECONDS = 0.5
_Page = TypeVar("_Page", SearchAnswer, PhotosAnswer)


class ServerError(SetNetError):
    """A request was refused, or the server cannot be reached.

    Attributes
    ----------
    status
        The HTTP status; 0 when there was no answer.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Client:
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

    def __init__(
        self, url: str = "http://localhost:8422", token: str | None = None, timeout: float = 60.0
    ) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=f"{url.rstrip('/')}/api/v1", headers=headers, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def status(self) -> StatusAnswer:
        """Return what the library holds and what the server takes at most."""
        return self.call(StatusAnswer, "GET", "/status")

    # photos

    def find_faces(self, image: bytes | str | os.PathLike[str]) -> FacesAnswer:
        """Find the faces in an image; their ids serve in `search` and `save_person` for half an hour."""
        data = image if isinstance(image, bytes) else Path(image).read_bytes()
        return self.call(FacesAnswer, "POST", "/faces", data)

    def search(
        self, people: Sequence[PersonLike], *, without: Sequence[PersonLike] = (), **conditions: Any
    ) -> SearchAnswer:
        """Find the photos that contain these people: one page, whose `cursor` leads to the next.

        Conditions are those of `POST /search`: ``k``, ``at_least``, ``only``, ``sure``, ``after``,
        ``before``, ``folder``, ``min_faces``, ``max_faces``, ``mode``, ``totals``, ``cursor`` and so on.
        """
        body = {"people": [_person(p) for p in people], "without": [_person(p) for p in without]}
        return self.call(SearchAnswer, "POST", "/search", body | conditions)

    def hits(self, people: Sequence[PersonLike], **conditions: Any) -> Iterator[HitAnswer]:
        """Yield all photos that contain these people, the best first, page by page."""
        for page in _pages(lambda cursor: self.search(people, cursor=cursor, **conditions)):
            yield from page.hits

    def photos(self) -> Iterator[PhotoAnswer]:
        """Yield all photos of the library, the latest indexed first."""

        def read(cursor: str | None) -> PhotosAnswer:
            return self.call(PhotosAnswer, "GET", "/photos", params={"limit": 200, "cursor": cursor})

        for page in _pages(read):
            yield from page.photos

    def photo_at(self, path: str | os.PathLike[str]) -> PhotoAnswer | None:
        """Return the photo of a file on the server's machine, or None if it is not in the library."""
        found = self.call(PhotosAnswer, "GET", "/photos", params={"path": os.fspath(path)}).photos
        return found[0] if found else None

    def copies_of(self, file: str | os.PathLike[str]) -> list[PhotoAnswer]:
        """Return the photos with the content of a file of this machine, wherever they are."""
        content = blake2b(Path(file).read_bytes(), digest_size=16).hexdigest()
        return self.call(PhotosAnswer, "GET", "/photos", params={"content": content}).photos

    def photo_with_external_id(self, external_id: str) -> PhotoAnswer | None:
        """Return the photo that your program knows by this id, or None."""
        found = self.call(PhotosAnswer, "GET", "/photos", params={"external_id": external_id}).photos
        return found[0] if found else None

    def set_external_id(self, photo_id: str, external_id: str | None) -> PhotoAnswer:
        """Give a photo the id by which your program knows it, or take it away with None."""
        body = {"external_id": external_id}
        return self.call(PhotoAnswer, "PUT", f"/photos/{_word(photo_id)}/external-id", body)

    def changes(self, since: str | None = None, limit: int = 200) -> FeedAnswer:
        """Return what was added, changed or removed behind a cursor, in order; its `cursor` leads on."""
        return self.call(FeedAnswer, "GET", "/feed", params={"since": since, "limit": limit})

    def photo(self, photo_id: str) -> PhotoAnswer:
        """Return a photo with its faces and the saved people they look like."""
        return self.call(PhotoAnswer, "GET", f"/photos/{_word(photo_id)}")

    def thumbnail(self, photo_id: str, size: int = 320) -> bytes:
        """Return a photo as a small JPEG."""
        return self.send("GET", f"/photos/{_word(photo_id)}/thumbnail", params={"size": size}).content

    def download_photo(self, photo_id: str, place: str | os.PathLike[str]) -> Path:
        """Write the file of a photo to a place of this machine, and return its path."""
        return self.download(f"/photos/{_word(photo_id)}/file", place)

    # people

    def people(self) -> PeopleAnswer:
        """Return the saved people."""
        return self.call(PeopleAnswer, "GET", "/people")

    def save_person(self, name: str, faces: Sequence[str], if_exists: str = "ask") -> SavedPersonAnswer:
        """Save a person by example faces that `find_faces` returned."""
        body = {"name": name, "faces": list(faces), "if_exists": if_exists}
        return self.call(SavedPersonAnswer, "POST", "/people", body)

    def change_person(self, person: str, **changes: Any) -> PersonAnswer:
        """Change the ``name``, ``aliases``, ``note`` or ``cover`` of a person, given by name or id."""
        return self.call(PersonAnswer, "PATCH", f"/people/{_word(person)}", changes)

    def remove_person(self, person: str, *, for_good: bool = False) -> ChangeAnswer:
        """Remove a person, which `undo` takes back; ``for_good`` deletes them without a trace."""
        return self.call(ChangeAnswer, "DELETE", f"/people/{_word(person)}", params={"for_good": for_good})

    def photos_of(self, person: str) -> PersonPhotosAnswer:
        """Return the photos of a saved person, the latest first."""
        return self.call(PersonPhotosAnswer, "GET", f"/people/{_word(person)}/photos")

    def confirm(self, person: str, photo_id: str, face: int) -> PersonAnswer:
        """Say that a face of a photo is this person's."""
        return self.call(
            PersonAnswer, "POST", f"/people/{_word(person)}/confirm", {"photo": photo_id, "face": face}
        )

    def refuse(self, person: str, photo_id: str, face: int) -> PersonAnswer:
        """Say that a face of a photo is not this person's."""
        return self.call(
            PersonAnswer, "POST", f"/people/{_word(person)}/refuse", {"photo": photo_id, "face": face}
        )

    def undo(self, change: int | None = None) -> ChangeAnswer:
        """Undo a change of people, by default the latest."""
        return self.call(ChangeAnswer, "POST", "/changes/undo", {"change": change})

    # groups of unknown faces

    def groups(self, **conditions: Any) -> GroupsAnswer:
        """Return groups of faces that are probably one person's each, the largest first."""
        return self.call(GroupsAnswer, "GET", "/groups", params=conditions)

    def group(self, group_id: str) -> GroupMembersAnswer:
        """Return the faces of a group."""
        return self.call(GroupMembersAnswer, "GET", f"/groups/{_word(group_id)}")

    def name_group(self, group_id: str, name: str, if_exists: str = "ask") -> SavedPersonAnswer:
        """Say who a group is."""
        body = {"name": name, "if_exists": if_exists}
        return self.call(SavedPersonAnswer, "POST", f"/groups/{_word(group_id)}/name", body)

    def hide_group(self, group_id: str, hidden: bool = True) -> GroupAnswer:
        """Say that a group is nobody you know, or take that back."""
        return self.call(GroupAnswer, "PATCH", f"/groups/{_word(group_id)}", {"hidden": hidden})

    def suggestions(self, person: str | None = None) -> SuggestionsAnswer:
        """Return groups that may be a saved person's."""
        return self.call(SuggestionsAnswer, "GET", "/suggestions", params={"person": person})

    # index runs

    def index(
        self,
        folders: Sequence[str] = (),
        *,
        prune: bool = False,
        prune_many: bool = False,
        retry: bool = False,
    ) -> IndexAnswer:
        """Start to index folders of the server's machine; none: those indexed before."""
        body = {"folders": list(folders), "prune": prune, "prune_many": prune_many, "retry": retry}
        return self.call(IndexAnswer, "POST", "/index", body)

    def index_state(self) -> IndexAnswer:
        """Return the state of the latest index run."""
        return self.call(IndexAnswer, "GET", "/index")

    def stop_index(self) -> IndexAnswer:
        """Stop the index run; the next one goes on from there."""
        return self.call(IndexAnswer, "DELETE", "/index")

    def wait_for_index(self, progress: Callable[[IndexAnswer], None] | None = None) -> IndexAnswer:
        """Return when no index run is under way; ``progress`` is called with its state twice a second."""
        while (state := self.index_state()).state in ("running", "stopping"):
            if progress is not None:
                progress(state)
            time.sleep(_LOOK_SECONDS)
        return state

    def failures(self, limit: int = 200, offset: int = 0) -> FailuresAnswer:
        """Return files that could not be read, with the reasons."""
        return self.call(FailuresAnswer, "GET", "/failures", params={"limit": limit, "offset": offset})

    # any request

    def call(
        self,
        answer: type[T],
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> T:
        """Send a request, with JSON or bytes as its body, and return its answer."""
        return answer.model_validate(self.send(method, path, body, params).json())

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        """Send a request; what the server refuses is raised."""
        given: dict[str, Any] = {}
        if isinstance(body, bytes):
            given = {"content": body, "headers": {"Content-Type": "application/octet-stream"}}
        elif body is not None:
            given = {"json": {name: value for name, value in body.items() if value is not None}}
        known = {name: value for name, value in (params or {}).items() if value is not None}
        try:
            response = self._http.request(method, path, params=known, **given)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        return _check_status(response)

    def download(self, path: str, place: str | os.PathLike[str]) -> Path:
        """Write what an address holds to a file, whole or not at all, and return its path."""
        place = Path(place)
        part = place.with_name(f".{place.name}.part")
        try:
            with self._http.stream("GET", path) as response, part.open("wb") as file:
                if response.is_error:
                    response.read()
                for piece in _check_status(response).iter_bytes():
                    file.write(piece)
            part.replace(place)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        finally:
            part.unlink(missing_ok=True)
        return place

    def _unreachable(self, error: httpx.HTTPError) -> ServerError:
        return ServerError(f"no answer from {self._http.base_url.copy_with(path='/')}: {error}")


def _check_status(response: httpx.Response) -> httpx.Response:
    if response.is_success:
        return response
    try:
        detail = str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        detail = response.text[:200] or response.reason_phrase
    raise ServerError(detail, response.status_code)


def _pages(read: Callable[[str | None], _Page]) -> Iterator[_Page]:
    """Yield all pages, each read with the cursor that the one before it had."""
    page = read(None)
    yield page
    while page.cursor is not None:
        page = read(page.cursor)
        yield page


def _person(person: PersonLike) -> dict[str, Any]:
    """Return a person of a query as the API takes one.

    >>> _person("Anna"), _person(["f-1", "f-2"]), _person({"group": "g17"})
    ({'saved': 'Anna'}, {'faces': ['f-1', 'f-2']}, {'group': 'g17'})
    """
    if isinstance(person, str):
        return {"saved": person}
    return dict(person) if isinstance(person, Mapping) else {"faces": list(person)}


def _word(text: str) -> str:
    return quote(text, safe="")
