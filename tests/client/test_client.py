"""The client against a real server."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from setnet.client import AsyncClient, Client, ServerError
from tests.support.live_server import server_on

pytestmark = pytest.mark.xdist_group("client")


@pytest.fixture(scope="module")
def client(made: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a server over a copy of the album's library."""
    place = tmp_path_factory.mktemp("client")
    shutil.copytree(made.library, place / "library")
    with server_on(place / "library") as server, Client(server.url) as client:
        yield client


def test_people_are_found_by_uploaded_faces(
    client: Client, portrait_file: Callable[[str], Path], tmp_path: Path
) -> None:
    faces = [client.find_faces(portrait_file(person)).faces[0].id or "" for person in ("P001", "P003")]
    answer = client.search([[faces[0]], {"faces": [faces[1]], "name": "Bea"}], limit=2, totals=True)
    assert len(answer.hits) == 2
    assert answer.people[1] == "Bea"
    assert answer.totals is not None
    every = list(client.hits([[faces[0]]], limit=1))
    assert len(every) > 1
    assert [hit.score for hit in every] == sorted((hit.score for hit in every), reverse=True)
    photo = client.photo(every[0].id)
    assert (photo.id, len(photo.faces)) == (every[0].id, len(every[0].faces))
    assert client.thumbnail(photo.id)[:2] == b"\xff\xd8"
    there = client.download_photo(photo.id, tmp_path / "photo.jpg")
    assert there.read_bytes() == Path(photo.photo).read_bytes()
    at_path = client.photo_at(photo.photo)
    assert at_path is not None
    assert at_path.id == photo.id
    assert [one.id for one in client.find_copies(there)] == [photo.id]
    assert client.photo_at("/no/such/photo.jpg") is None
    assert {one.id for one in client.photos()} >= {hit.id for hit in every}


def test_people_are_saved_changed_undone_and_removed(
    client: Client, portrait_file: Callable[[str], Path]
) -> None:
    face = client.find_faces(portrait_file("P005").read_bytes()).faces[0].id or ""
    saved = client.save_person("Cleo / Cléo", [face])
    assert saved.name == "Cleo / Cléo"
    assert client.change_person(saved.id, name="Cleo").name == "Cleo"
    client.undo()
    assert [person.name for person in client.people().people] == ["Cleo / Cléo"]
    found = client.person_photos("Cleo / Cléo").photos
    assert found
    assert [person.photos for person in client.people().people] == [client.person_photos("Cleo / Cléo").total]
    assert {hit.id for hit in client.hits(["Cleo / Cléo"], sure=True)} <= {photo.id for photo in found}
    client.undo(client.remove_person("Cleo / Cléo").id)
    client.remove_person("Cleo / Cléo", for_good=True)
    with pytest.raises(ServerError, match="Cleo") as refused:
        client.person_photos("Cleo / Cléo")
    assert refused.value.status == 404


def test_photos_have_ids_of_another_program(client: Client) -> None:
    one, other = sorted(photo.id for photo in client.photos())[:2]
    assert client.set_external_id(one, "DAM/17 ü").external_id == "DAM/17 ü"
    found = client.photo_with_external_id("DAM/17 ü")
    assert found is not None
    assert found.id == one
    with pytest.raises(ServerError, match=f"that of photo {one}"):
        client.set_external_id(other, "DAM/17 ü")
    assert client.set_external_id(one, None).external_id is None
    assert client.photo_with_external_id("DAM/17 ü") is None


def test_groups_and_index_runs(client: Client) -> None:
    client.index()
    assert client.wait_for_index().state == "done"
    assert client.failures().total == client.status().failed
    largest = client.groups(min_faces=2).groups[0]
    assert len(client.group(largest.id).members) == largest.faces
    assert client.hide_group(largest.id).hidden
    assert not client.hide_group(largest.id, hidden=False).hidden
    assert client.suggestions().suggestions == []


def test_what_the_server_refuses_is_told_in_its_own_words(client: Client, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="nobody saved is called 'Nobody'") as refused:
        client.search(["Nobody"])
    assert refused.value.status == 404
    with pytest.raises(ServerError, match="not a photo"):
        client.find_faces(b"no image")
    with pytest.raises(ServerError, match="no photo"):
        client.download_photo("99999", tmp_path / "none.jpg")
    assert not list(tmp_path.iterdir())


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}") as client, pytest.raises(ServerError, match=f"127.0.0.1:{port}"):
        client.status()


def test_the_async_client_asks_the_same(client: Client, portrait_file: Callable[[str], Path]) -> None:
    async def ask(url: str) -> list[object]:
        async with AsyncClient(url) as other:
            face = (await other.find_faces(portrait_file("P001"))).faces[0].id or ""
            hits = [hit.id async for hit in other.hits([[face]], limit=1)]
            seen, thumbnail = await asyncio.gather(other.photo(hits[0]), other.thumbnail(hits[0]))
            with pytest.raises(ServerError, match="nobody saved is called 'Nobody'"):
                await other.search(["Nobody"])
            return [hits, seen, thumbnail, await other.photo_at("/no/such/photo.jpg")]

    url = str(client._http.base_url).removesuffix("/api/v1/")
    face = client.find_faces(portrait_file("P001")).faces[0].id or ""
    hits = [hit.id for hit in client.hits([[face]])]
    assert asyncio.run(ask(url)) == [hits, client.photo(hits[0]), client.thumbnail(hits[0]), None]
