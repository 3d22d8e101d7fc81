"""`POST /search`: the photos that contain these people; `/searches`: queries under a name."""

from __future__ import annotations

from hashlib import blake2b
from typing import Annotated, Literal, NamedTuple

import numpy as np
from fastapi import Response
from numpy.typing import NDArray
from pydantic import Field, StringConstraints
from pydantic_core import to_json

from setnet.client import Hits, SavedSearches
from setnet.errors import InvalidInputError
from setnet.library import (
    Change,
    Example,
    Library,
    PhotoQuery,
    QueryPerson,
    Ranking,
    SavedSearch,
)
from setnet.library.paths import display_path
from setnet.library.person import name_key
from setnet.web.faces import Examples, check_vector, face_descriptor, uploaded_examples
from setnet.web.problems import Problem
from setnet.web.requests import (
    Name,
    NameInPath,
    PhotoConditions,
    State,
    api_router,
    check_addressable,
    reads,
    require_group,
    require_person,
    writes,
)
from setnet.web.state import ServerState

MOST_PEOPLE = 16
routes = api_router("search")
MOST_HITS = 20_000  # further down nobody looks
_CURSOR = r"^[0-9]{1,5}-[0-9]{1,18}-[0-9a-f]{16}$"


class PersonQuery(Examples):
    """A person looked for."""

    saved: Annotated[Name | None, Field(description="The name of a saved person")] = None
    group: Annotated[
        str | None, StringConstraints(pattern=r"^g[1-9][0-9]{0,17}$"), Field(description="A group, as g17")
    ] = None
    name: Annotated[Name | None, Field(description="What to call them in the answer")] = None


class SearchOptions(PhotoConditions):
    """What a search asks besides the people, saved or not."""

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
    newest: Annotated[
        bool, Field(description="Of photos with equally many of the people, the latest taken first")
    ] = False


class SearchQuery(SearchOptions):
    """The people to look for, and conditions on the photos."""

    people: Annotated[list[PersonQuery], Field(min_length=1, max_length=MOST_PEOPLE)]
    without: Annotated[list[PersonQuery], Field(max_length=MOST_PEOPLE)] = []
    totals: Annotated[
        bool, Field(description="Also count the photos with all of the people, all but one and so on")
    ] = False
    collapse: Annotated[
        bool,
        Field(description="Make one hit of copies and bursts on a page: see `copies` and `others` of hits"),
    ] = False
    mode: Literal["exact", "fast", "set"] = "exact"
    limit: Annotated[int, Field(ge=1, le=200, description="Hits per page")] = 50
    cursor: Annotated[str | None, Field(pattern=_CURSOR, description="From the page before")] = None


@routes.post("/search", response_model=Hits)
async def search(query: SearchQuery, state: State) -> Response:
    """Find the photos that contain these people: all of them first, then all but one, and so on.

    A person is a saved name, a group, faces found by `POST /faces`, faces of photos in the library, images
    (base64) or descriptors, or several of these together. `cursor` of an answer brings its next page, in
    the order that was found first: no photo comes twice or is left out when the library changes meanwhile.
    """
    answer, place = None, Place.of(query)
    if place is not None:
        answer = await state.searching.run(_next_page, state, query, place)
    if answer is None:
        uploads = [await uploaded_examples(state, person) for person in (*query.people, *query.without)]
        answer = await state.searching.run(_search, state, query, place, uploads)
    return Response(answer, media_type="application/json")


class SearchToSave(SearchOptions):
    """A search to be kept under a name."""

    people: Annotated[list[Name], Field(min_length=1, max_length=MOST_PEOPLE, description="Saved people")]
    without: Annotated[list[Name], Field(max_length=MOST_PEOPLE)] = []


@routes.get("/searches")
@reads
def list_searches(library: Library) -> SavedSearches:
    """List the saved searches by name; to see the photos of one, send what it has to `POST /search`."""
    return SavedSearches(searches=list(library.searches))


@routes.put("/searches/{name:path}")
@writes
def save_search(library: Library, name: NameInPath, query: SearchToSave) -> SavedSearch:
    """Keep a search under a name, in place of the one that has it; this can be undone.

    A folder of links that follows the search, made by `setnet search --link-to`, goes on to do so.
    """
    check_addressable(name)
    for person in (*query.people, *query.without):
        require_person(library, person)
    links = [search.link_to for search in library.searches if name_key(search.name) == name_key(name)]
    given = query.model_dump() | {"at_least": 1 if query.at_least is None else query.at_least}
    given |= {"people": tuple(query.people), "without": tuple(query.without)}
    return library.searches.save(SavedSearch(name, **given, link_to=links[0] if links else None))


@routes.delete("/searches/{name:path}")
@writes
def remove_search(library: Library, name: NameInPath) -> Change:
    """Remove a saved search; this can be undone."""
    try:
        return library.searches.remove(name)
    except InvalidInputError as error:
        raise Problem(404, str(error)) from error


class Place(NamedTuple):
    """Where a page begins in the answer to a query, ranked as of a commit of the library."""

    offset: int
    commit: int
    digest: str

    @classmethod
    def of(cls, query: SearchQuery) -> Place | None:
        """Return the place that a cursor names; one of another query is an error."""
        if query.cursor is None:
            return None
        offset, commit, digest = query.cursor.split("-")
        if digest != _digest(query):
            raise InvalidInputError("the cursor does not belong to this query: leave it out to start again")
        return cls(int(offset), int(commit), digest)


def _next_page(state: ServerState, query: SearchQuery, place: Place) -> bytes | None:
    """Return a page of an answer that is kept; None when it is not."""
    with state.library.reading() as library:
        ranking = state.rankings.get(place.digest, place.commit, library)
        return None if ranking is None else _page(state, query, library, ranking, place.offset)


def _search(
    state: ServerState, query: SearchQuery, place: Place | None, uploads: list[list[Example]]
) -> bytes:
    """Return the first page, or one whose answer is not kept any more."""
    offset = 0 if place is None else place.offset
    with state.library.reading() as library:
        if place is not None and library.photos.commit() != place.commit:
            raise Problem(
                410,
                "this answer is not kept any more, and the library has changed since: "
                "leave the cursor out to start again",
            )
        ranking = library.rank(_photo_query(state, query, uploads, offset, library), MOST_HITS)
        return _page(state, query, library, ranking, offset)


def _photo_query(
    state: ServerState, query: SearchQuery, uploads: list[list[Example]], offset: int, library: Library
) -> PhotoQuery:
    people = [
        _query_person(person, number, found, library)
        for number, (person, found) in enumerate(
            zip((*query.people, *query.without), uploads, strict=True), 1
        )
    ]
    return PhotoQuery(
        people[: len(query.people)],
        without=people[len(query.people) :],
        k=query.limit,
        offset=offset,
        mode=query.mode,
        at_least=1 if query.at_least is None else query.at_least,
        only=query.only,
        sure=query.sure,
        min_similarity=query.min_similarity,
        totals=query.totals,
        newest=query.newest,
        conditions=query.conditions(),
        threads=1 if state.searching.waiting > 1 else None,  # others keep the cores busy
    )


def _page(state: ServerState, query: SearchQuery, library: Library, ranking: Ranking, offset: int) -> bytes:
    end = offset + query.limit
    answer = ranking.page(offset, query.limit)
    if query.collapse:
        answer = answer.collapse()
    cursor = None
    if ranking.has_more(end):
        place = Place(end, ranking.commit, _digest(query))
        cursor = "-".join(map(str, place))
        state.rankings.keep(place.digest, library, ranking)
    return to_json(answer.to_dict(display_path) | {"cursor": cursor})


def _digest(query: SearchQuery) -> str:
    """Return a digest of everything in a query but its page."""
    text = query.model_dump_json(exclude={"cursor", "limit"})
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _query_person(person: PersonQuery, number: int, uploads: list[Example], library: Library) -> QueryPerson:
    """Return a person of a query with all their examples."""
    parts: list[NDArray[np.float32]] = [face.descriptor[None] for face in uploads]
    name, known = person.name, list[QueryPerson]()
    if person.saved is not None:
        require_person(library, person.saved)
        known.append(library.person(person.saved))
    if person.group is not None:
        require_group(library, person.group)
        known.append(library.groups.as_person(person.group))
    for one in known:
        parts.append(one.descriptors)
        name = name or one.name
    parts += [face_descriptor(library, face)[None] for face in person.photo_faces]
    parts += [check_vector(vector, library.dim, n)[None] for n, vector in enumerate(person.descriptors, 1)]
    if not parts:
        raise InvalidInputError(
            f"person {number} has no example: give saved, group, faces, photo_faces, images or descriptors"
        )
    return QueryPerson(
        name or f"person {number}",
        np.concatenate(parts),
        confirmed=frozenset[tuple[str, int]]().union(*(one.confirmed for one in known)),
        rejected=frozenset[tuple[str, int]]().union(*(one.rejected for one in known)),
        tagged={photo: box for one in known for photo, box in one.tagged.items()},
        id=next((one.id for one in known if one.id), None),
    )
