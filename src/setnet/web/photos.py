"""`/photos`, `/timeline`, `/archive`: photos by id and by date, their pictures and their files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from io import FileIO
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from setnet.client import Answer, Photo, Photos
from setnet.errors import InvalidInputError, PhotoError
from setnet.faces import Box
from setnet.library import Library, LibraryPhoto, Person, StoredFace
from setnet.library.paths import display_path
from setnet.library.person_matcher import NamedPeople
from setnet.library.photos import stack_to_dict
from setnet.library.pictures import SPRITE
from setnet.library.stacks import split_stack
from setnet.video.sprite import sprite_times
from setnet.web.caches import Timeline as KnownTimeline
from setnet.web.faces import photo_descriptors
from setnet.web.files import OpenedFile, PhotoArchive, byte_range, media_type, open_inside, real_path
from setnet.web.problems import Problem
from setnet.web.requests import (
    Jpeg,
    Name,
    PhotoConditions,
    State,
    Strict,
    api_router,
    reads,
    reply,
    require_person,
    searches,
    writes,
)
from setnet.web.state import ServerState

routes = api_router("photos")
Version = Annotated[str | None, Query(max_length=64, description="The photo's version: cached for good")]
PhotoId = Annotated[str, Path(pattern=r"^[0-9]{1,18}$")]
# A handful of sizes: each is kept on disk, so a client must not be able to fill it with thousands.
SIZES = (160, 320, 640, 1600)
FACE_SIZES = (96, 160, 320)
_FOREVER = "private, max-age=31536000, immutable"
_SHORT = "private, max-age=60"
_MOST_ARCHIVED = 500
_ARCHIVED_IDS = rf"^[0-9]{{1,18}}(,[0-9]{{1,18}}){{0,{_MOST_ARCHIVED - 1}}}$"


class ExternalIdQuery(Strict):
    """The id by which another program knows a photo."""

    external_id: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="Null or none: the photo has none any more"),
    ] = None


class NewTag(Strict):
    """A saved person who is in a photo."""

    person: Name
    box: Annotated[
        list[float] | None,
        Field(min_length=4, max_length=4, description="x0, y0, x1, y1 in pixels of the upright photo"),
    ] = None


class Shots(Answer):
    """The shots of the video that a shot is of, in order, with who is in them."""

    seconds: Annotated[float, Field(description="Of the video, as far as it was read")]
    shots: list[Photo]


class Month(Answer):
    """How many photos of a month are listed; of no known time when `month` is null."""

    month: Annotated[str | None, Field(description="As 2019-07")]
    photos: int


class Timeline(Answer):
    """The months of all photos, the latest first."""

    months: list[Month]
    total: int
    photos: Annotated[int, Field(description="As `total`, with copies and bursts counted one by one")]


class Camera(Answer):
    """What the photo's file tells of how and where it was taken; null where it does not."""

    camera: str | None = None
    lens: str | None = None
    exposure: Annotated[float | None, Field(description="In seconds")] = None
    aperture: Annotated[float | None, Field(description="The f-number")] = None
    iso: float | None = None
    focal_length: Annotated[float | None, Field(description="In millimetres")] = None
    latitude: Annotated[float | None, Field(description="In degrees north")] = None
    longitude: Annotated[float | None, Field(description="In degrees east")] = None


class PhotoFolder(Answer):
    """A folder, and how many photos and shots lie directly in it."""

    path: str
    photos: int


class PhotoFolders(Answer):
    """The folders that photos lie in."""

    folders: list[PhotoFolder]


@routes.get("/photos", response_model=Photos)
@reads
def list_photos(
    library: Library,
    limit: Annotated[int, Query(ge=1, le=200)] = 60,
    cursor: Annotated[str | None, Query(pattern=r"^[0-9]{1,18}$")] = None,
    path: Annotated[
        str | None, Query(max_length=4096, description="Only the photo of this file; none if unknown")
    ] = None,
    content: Annotated[
        str | None,
        Query(pattern=r"^[0-9a-f]{32}$", description="Only copies of this file: BLAKE2b of 16 bytes in hex"),
    ] = None,
    external_id: Annotated[
        str | None, Query(max_length=200, description="Only the photo that another program calls so")
    ] = None,
) -> Response:
    """List the photos of the library, latest indexed first, or look some up by path, content or other id."""
    if external_id is not None:
        one = library.photos.with_external_id(external_id)
        fits = one is not None and content in (None, one.content) and path in (None, display_path(one.path))
        return _page([one] if one and fits else [], None)
    if path is not None or content is not None:
        return _page(_look_up(library, path, content), None)
    photos = library.photos.latest(limit + 1, None if cursor is None else int(cursor))
    return _page(photos[:limit], photos[limit - 1].id if len(photos) > limit else None)


def stack_facts(photos: Sequence[LibraryPhoto]) -> dict[str, Any]:
    """Return what the first photo of a stack stands for as values that JSON can hold."""
    return stack_to_dict(*split_stack(photos), display_path)


def _page(photos: Iterable[LibraryPhoto], cursor: str | None) -> Response:
    return reply({"photos": [photo.to_dict(display_path) for photo in photos], "cursor": cursor})


@routes.get("/photos/{photo_id}", response_model=Photo)
@reads
def get_photo(library: Library, photo_id: PhotoId) -> Response:
    """Return a photo with its faces and the saved people they look like."""
    return reply(_details(library, photo_id))


@routes.put("/photos/{photo_id}/external-id", response_model=Photo)
@writes
def set_external_id(library: Library, photo_id: PhotoId, query: ExternalIdQuery) -> Response:
    """Give a photo the id by which your program knows it, or take it away with null."""
    _require_photo(library, photo_id)
    return reply(library.photos.set_external_id(photo_id, query.external_id).to_dict(display_path))


def _look_up(library: Library, path: str | None, content: str | None) -> list[LibraryPhoto]:
    """Return the photos with this path and this content, where given."""
    if path is not None:
        try:
            found = [library.photos.photo_at(os.fsencode(path))]
        except InvalidInputError:
            return []
        return [photo for photo in found if content in (None, photo.content)]
    copies = library.photos.same_content(bytes.fromhex(content or ""))
    ids = [str(number) for numbers, _ in copies for number in numbers]
    return list(library.photos.get_many(ids).values())


def _details(library: Library, photo_id: str) -> dict[str, Any]:
    photo = _require_photo(library, photo_id)
    descriptors: Any = photo_descriptors(library, photo_id) if photo.faces else []
    people, groups = NamedPeople.of(library), library.groups.of_photo(photo_id)
    faces = [
        face.to_dict()
        | {"group": groups.get(face.ordinal)}
        | _times(photo, face)
        | people.identify(descriptor, face.quality, (photo.id, face.ordinal)).to_dict()
        for face, descriptor in zip(photo.faces, descriptors, strict=False)
    ]
    tags = [tag.to_dict() for tag in library.people.tags(photo_id)]
    return photo.to_dict(display_path) | {"faces": faces, "tags": tags}


@routes.post("/photos/{photo_id}/tags", status_code=201)
@writes
def tag_photo(library: Library, photo_id: PhotoId, query: NewTag) -> Person:
    """Keep that a saved person is in a photo, in a box or anywhere, also where no face was found.

    Searches find the photo as if the match were sure; a tag is no example. A second tag of the person and a
    box outside the photo are refused with 422.
    """
    _require_photo(library, photo_id)
    person = require_person(library, query.person)
    return library.people.tag(person, photo_id, None if query.box is None else Box(*query.box))


@routes.delete("/photos/{photo_id}/tags")
@writes
def untag_photo(
    library: Library, photo_id: PhotoId, person: Annotated[Name, Query(description="Whose tag")]
) -> Person:
    """Take the tag of a person in a photo back; this can be undone."""
    _require_photo(library, photo_id)
    return library.people.untag(require_person(library, person), photo_id)


def _times(photo: LibraryPhoto, face: StoredFace) -> dict[str, Any]:
    """Return where a person in a shot is when."""
    if photo.start is None:
        return {}
    track = [[round(float(value), 2) for value in look] for look in face.track]
    return face.place(photo.best) | {"track": track}


@routes.get("/photos/{photo_id}/shots", response_model=Shots)
@reads
def list_shots(library: Library, photo_id: PhotoId) -> Response:
    """Return all shots of the video that a shot is of: who is where along it."""
    photo = _require_shot(library, photo_id)
    found = library.photos.video_shots(photo.stored_path)
    seconds = max(shot.stop or 0.0 for shot in found)
    return reply({"seconds": seconds, "shots": [_details(library, shot.id) for shot in found]})


def _require_shot(library: Library, photo_id: str) -> LibraryPhoto:
    photo = _require_photo(library, photo_id)
    if photo.start is None:
        raise Problem(404, f"photo {photo_id} is no shot of a video")
    return photo


@routes.get("/photos/{photo_id}/sprite", response_class=Jpeg)
async def get_sprite(photo_id: PhotoId, request: Request, state: State, v: Version = None) -> Response:
    """Return a few pictures of a shot beside each other in one JPEG; made once, then kept."""
    photo = await state.read(lambda library: _require_shot(library, photo_id))
    times = sprite_times(photo.start or 0.0, photo.stop or 0.0)
    return await _picture(request, state, photo, SPRITE, v, lambda file: state.drawing.sprite(file, times))


@routes.get("/photos/{photo_id}/thumbnail", response_class=Jpeg)
async def thumbnail(
    photo_id: PhotoId,
    request: Request,
    state: State,
    size: Annotated[int, Query(description=f"Longest side: one of {SIZES}")] = 320,
    v: Version = None,
) -> Response:
    """Return a photo as an upright JPEG; made once, then kept."""
    _check_size(size, SIZES)
    photo = await state.read(lambda library: _require_photo(library, photo_id))

    return await _picture(
        request, state, photo, str(size), v, lambda file: state.drawing.thumbnail(file, size, photo.best)
    )


@routes.get("/photos/{photo_id}/faces/{face}/picture", response_class=Jpeg)
async def photo_face_picture(
    photo_id: PhotoId,
    face: Annotated[int, Path(ge=0, le=100_000, description="Its number in the photo, from 0")],
    request: Request,
    state: State,
    size: Annotated[int, Query(description=f"Pixels: one of {FACE_SIZES}")] = 160,
    v: Version = None,
) -> Response:
    """Return a face of a photo as a square JPEG with some room around it; made once, then kept."""
    _check_size(size, FACE_SIZES)
    photo = await state.read(lambda library: _require_photo(library, photo_id))
    if face >= len(photo.faces):
        raise Problem(404, f"photo {photo_id} has {len(photo.faces)} faces, none with number {face}")
    found = photo.faces[face]

    return await _picture(
        request,
        state,
        photo,
        f"face{face}-{size}",
        v,
        lambda file: state.drawing.face_picture(file, found.box, size, found.at),
    )


def _check_size(size: int, sizes: Sequence[int]) -> None:
    if size not in sizes:
        raise InvalidInputError(f"size {size}: one of {', '.join(map(str, sizes))} is expected")


async def _picture(
    request: Request,
    state: ServerState,
    photo: LibraryPhoto,
    name: str,
    version: str | None,
    draw: Callable[[FileIO], bytes],
) -> Response:
    """Return a picture of a photo, unless the client has it already."""
    tag = f'"{photo.content}-{name}"'
    headers = {"ETag": tag, "Cache-Control": _FOREVER if version == photo.content[:12] else _SHORT}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)

    def find(library: Library) -> bytes:
        def drawn(_: LibraryPhoto) -> bytes:
            with open_inside(library, photo).file as file:
                return draw(file)

        real_path(library, photo)
        try:
            return library.photos.picture(photo, name, drawn)
        except PhotoError as error:
            raise Problem(404, f"no thumbnail: {str(error).removeprefix('the given image: ')}") from None

    return Jpeg(await state.drawing.run(state.with_library, find), headers=headers)


@routes.get("/photos/{photo_id}/camera")
async def get_camera(photo_id: PhotoId, state: State) -> Camera:
    """Return what a photo's file (EXIF) tells of the camera, its settings and the place."""

    def read(library: Library) -> dict[str, Any]:
        photo = _require_photo(library, photo_id)
        if photo.start is not None:
            return {}
        try:
            with open_inside(library, photo).file as file:
                return state.drawing.camera(file)
        except PhotoError:  # some raw files tell nothing to a reader of images
            return {}

    return Camera(**await state.drawing.run(state.with_library, read))


@routes.get("/photos/{photo_id}/file", response_class=Response, responses={200: {"content": {"image/*": {}}}})
async def photo_file(
    photo_id: PhotoId,
    request: Request,
    state: State,
    download: Annotated[bool, Query(description="Ask the browser to save it")] = False,
) -> Response:
    """Return the file of a photo or of a shot's video, as it is on the disk; or a range of its bytes."""
    photo, file = await state.read(lambda library: _open_photo(library, photo_id))
    name = quote(display_path(photo.path.name), safe="")
    kind = "attachment" if download else "inline"
    part = byte_range(request.headers.get("range"), file.size)
    first, last = part or (0, file.size - 1)
    about = {} if part is None else {"Content-Range": f"bytes {first}-{last}/{file.size}"}
    return StreamingResponse(
        file.chunks(first, last),
        status_code=200 if part is None else 206,
        media_type=media_type(photo.path),
        headers=about
        | {
            "Content-Length": str(last - first + 1),
            "Accept-Ranges": "bytes",
            "Content-Disposition": f"{kind}; filename*=UTF-8''{name}",
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "Cache-Control": "private, no-cache",
        },
    )


def _open_photo(library: Library, photo_id: str) -> tuple[LibraryPhoto, OpenedFile]:
    photo = _require_photo(library, photo_id)
    return photo, open_inside(library, photo)


def _require_photo(library: Library, photo_id: str) -> LibraryPhoto:
    photo = library.photos.get_many([photo_id]).get(photo_id)
    if photo is None:
        raise Problem(404, f"no photo {photo_id} in this library")
    return photo


class TimelineQuery(PhotoConditions):
    """Which photos to list by date; none: all."""

    without: Annotated[
        list[Name], Field(max_length=16, description="Saved people, or groups as g17, who must not be there")
    ] = []
    collapse: Annotated[
        bool, Field(description="Make one of copies and bursts: see `copies` and `others` of photos")
    ] = False

    def read(self, library: Library, state: ServerState) -> KnownTimeline:
        """Return the photos that are asked for."""
        for who in self.without:
            if who not in library.groups:
                require_person(library, who)
        return state.timeline.of(library, self.conditions(), self.without, self.collapse)


class TimelinePage(TimelineQuery):
    """A part of the photos by date."""

    cursor: Annotated[
        int, Field(ge=0, le=10**9, description="Also how many later photos to pass over, to jump to a place")
    ] = 0
    limit: Annotated[int, Field(ge=1, le=200)] = 100


@routes.get("/timeline")
@searches
def get_timeline(library: Library, state: State, query: Annotated[TimelineQuery, Query()]) -> Timeline:
    """Count the photos of each month, the latest first; those of no known time come last."""
    timeline = query.read(library, state)
    months = [Month(month=month, photos=photos) for month, photos in timeline.months]
    total = len(timeline.ids)
    return Timeline(months=months, total=total, photos=total + sum(map(len, timeline.stacks.values())))


@routes.get("/timeline/photos", response_model=Photos)
@searches
def list_by_date(library: Library, state: State, query: Annotated[TimelinePage, Query()]) -> Response:
    """List photos, the latest taken first."""
    timeline = query.read(library, state)
    end = query.cursor + query.limit
    stacks = [[number, *timeline.stacks.get(number, ())] for number in timeline.ids[query.cursor : end]]
    found = library.photos.get_many(str(number) for stack in stacks for number in stack)
    photos = []
    for stack in stacks:
        if together := [found[photo] for photo in map(str, stack) if photo in found]:
            photos.append(together[0].to_dict(display_path) | stack_facts(together))
    return reply({"photos": photos, "cursor": str(end) if end < len(timeline.ids) else None})


@routes.get("/timeline/folders")
@reads
def list_photo_folders(library: Library) -> PhotoFolders:
    """List the folders that photos lie in, by their paths."""
    folders = sorted(library.photos.photo_folders().items())
    return PhotoFolders(folders=[PhotoFolder(path=display_path(p), photos=n) for p, n in folders])


@routes.get("/archive", response_class=Response, responses={200: {"content": {"application/zip": {}}}})
@reads
def get_archive(
    library: Library,
    photos: Annotated[
        str, Query(pattern=_ARCHIVED_IDS, description=f"Ids with commas between, at most {_MOST_ARCHIVED}")
    ],
) -> Response:
    """Return the files of photos as one zip file, made while it is sent.

    A file that cannot be read is named in `not included.txt` at its end.
    """
    found = library.photos.get_many(photos.split(","))
    if not found:
        raise Problem(404, "none of these photos is in this library")
    return StreamingResponse(
        PhotoArchive(list(found.values()), list(library.folders)).chunks(),
        media_type="application/zip",
        headers={
            "Content-Disposition": 'attachment; filename="photos.zip"',
            "Content-Security-Policy": "default-src 'none'; sandbox",
        },
    )
