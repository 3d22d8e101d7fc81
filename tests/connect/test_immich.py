from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from setnet.connect import ImmichIndex, SyncReport
from setnet.errors import InvalidInputError, NotAnIndexError, StorageError
from setnet.library import Conditions
from tests.support.immich_database import OWNER, READER, ImmichDatabase, uuid_of
from tests.support.postgres_server import PostgresServer

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture(params=[False, True], ids=["personId", "personGroupId"])
def immich(server: PostgresServer, request: pytest.FixtureRequest) -> ImmichDatabase:
    """Four people, one of them hidden and one without a name, in seven photos."""
    immich = ImmichDatabase(server.new_database("immich"), groups=request.param)
    immich.add_reader(server.uri())
    for name in ("Anna", "Ben", "Carl"):
        immich.add_person(name, hidden=name == "Carl")
    immich.add_photo("both", ["Anna", "Ben"], "2018-01-01 12:00:00+00")
    immich.add_photo("anna", ["Anna"], "2019-06-01 12:00:00+00")
    immich.add_photo("three", ["Ben", "Carl", "Anna"])
    immich.add_photo("carl", ["Carl"])
    immich.add_photo("ben and a stranger", ["Ben", "Stranger?"])
    immich.add_photo("maybe anna", ["Anna?", "Ben"])
    immich.add_photo("empty", [])
    return immich


def reader(immich: ImmichDatabase) -> str:
    uri: str = immich.uri
    return uri.replace("postgres@", f"{READER}@")


def sync(immich: ImmichDatabase, place: Path) -> SyncReport:
    return ImmichIndex.sync(place, reader(immich))


def found(place: Path, people: Sequence[str], **options: Any) -> dict[str, tuple[str, ...]]:
    with ImmichIndex(place) as index:
        hits = index.search(people, **options)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    return {hit.file.removesuffix(".jpg"): hit.people for hit in hits}


def test_photos_are_found_by_several_people(immich: ImmichDatabase, tmp_path: Path) -> None:
    report = sync(immich, tmp_path / "i")
    assert report == SyncReport(added=6, changed=0, renamed=0, removed=0, skipped=0, photos=6, people=3)
    both = found(tmp_path / "i", ["anna", "BEN"])
    assert set(list(both)[:3]) == {"both", "three", "maybe anna"}
    assert both["three"] == ("Anna", "Ben")
    assert both["maybe anna"] == ("Anna?", "Ben")
    assert set(list(both)[3:]) == {"anna", "ben and a stranger"}
    assert set(found(tmp_path / "i", ["Anna", "Ben"], at_least=2)) == {"both", "three", "maybe anna"}
    assert set(found(tmp_path / "i", ["Anna", "Ben"], only=True)) == {"both", "maybe anna", "anna"}
    assert set(found(tmp_path / "i", ["Ben"], without=["Anna"])) == {"ben and a stranger"}
    assert set(found(tmp_path / "i", ["Anna"], without=["Carl", "Ben"])) == {"anna"}
    late = Conditions(after=datetime(2018, 6, 1), before=datetime(2020, 1, 1))
    assert set(found(tmp_path / "i", ["Anna"], conditions=late)) == {"anna"}


def test_what_immich_says_comes_before_similarity(immich: ImmichDatabase, tmp_path: Path) -> None:
    immich.give("anna", 0, "Carl")  # looks like Anna
    sync(immich, tmp_path / "i")
    assert "anna" not in found(tmp_path / "i", ["Anna"])
    assert found(tmp_path / "i", ["Carl"], only=True) == {"carl": ("Carl",), "anna": ("Carl",)}
    assert "anna" in found(tmp_path / "i", ["Carl"], without=["Anna"])


def test_hits_link_into_immich(immich: ImmichDatabase, tmp_path: Path) -> None:
    sync(immich, tmp_path / "i")
    with ImmichIndex(tmp_path / "i") as index:
        hit = index.search(["Anna"], only=True, at_least=1, link_base="https://photos.example/")[0]
        people = {p.name: (p.photos, p.hidden) for p in index.people}
    assert hit.link == f"https://photos.example/photos/{uuid_of('anna')}"
    assert (hit.id, hit.taken) == (str(uuid_of("anna")), "2019-06-01 12:00:00")
    assert json.loads(json.dumps(hit.to_dict()))["file"] == "anna.jpg"
    assert people == {"Ben": (4, False), "Anna": (3, False), "Carl": (2, True)}


def test_sync_fetches_only_what_changed(immich: ImmichDatabase, tmp_path: Path) -> None:
    place = tmp_path / "i"
    sync(immich, place)
    assert sync(immich, place) == SyncReport(0, 0, 0, 0, 0, 6, 3)

    immich.add_photo("new", ["Anna", "Carl"])
    immich.give("maybe anna", 0, "Anna")
    immich.add_face("carl", 1, "Ben")
    assert sync(immich, place) == SyncReport(1, 1, 1, 0, 0, 7, 3)
    assert found(place, ["Anna", "Ben"])["maybe anna"] == ("Anna", "Ben")
    assert set(found(place, ["Ben", "Carl"], at_least=2)) == {"three", "carl"}

    immich.run(
        'UPDATE face_search SET embedding = embedding + embedding WHERE "faceId" = %s', [uuid_of("new/0")]
    )
    assert sync(immich, place).changed == 1

    immich.run("UPDATE person SET name = 'Annabel' WHERE name = 'Anna'")
    sync(immich, place)
    assert "both" in found(place, ["Annabel"])


@pytest.mark.parametrize(
    "change",
    ["\"deletedAt\" = now(), status = 'trashed'", "visibility = 'hidden'", "visibility = 'locked'",
     "visibility = 'archive'", "status = 'deleted'"],
)  # fmt: skip
def test_photos_that_immich_does_not_show_go(immich: ImmichDatabase, tmp_path: Path, change: str) -> None:
    place = tmp_path / "i"
    sync(immich, place)
    immich.change("both", change)
    assert sync(immich, place).removed == 1
    assert "both" not in found(place, ["Anna", "Ben"])
    immich.change("both", "\"deletedAt\" = NULL, status = 'active', visibility = 'timeline'")
    assert sync(immich, place).added == 1
    assert "both" in found(place, ["Anna", "Ben"])


def test_photos_and_faces_that_are_deleted_go(immich: ImmichDatabase, tmp_path: Path) -> None:
    place = tmp_path / "i"
    sync(immich, place)
    immich.run("DELETE FROM asset WHERE id = %s", [uuid_of("both")])
    immich.run('UPDATE asset_face SET "deletedAt" = now() WHERE id = %s', [uuid_of("anna/0")])
    immich.run("DELETE FROM asset_face WHERE id = %s", [uuid_of("three/2")])
    assert sync(immich, place) == SyncReport(0, 1, 0, 2, 0, 4, 3)
    with pytest.raises(InvalidInputError, match="no face that Immich has given to Anna is in the index"):
        found(place, ["Anna"])


def test_hidden_faces_and_unusable_descriptors_are_left_out(immich: ImmichDatabase, tmp_path: Path) -> None:
    immich.run(
        'UPDATE face_search SET embedding = embedding - embedding WHERE "faceId" = %s', [uuid_of("both/0")]
    )
    if immich._groups:  # older versions hide no faces
        immich.run('UPDATE asset_face SET "isVisible" = false WHERE id = %s', [uuid_of("anna/0")])
    report = sync(immich, tmp_path / "i")
    assert report.skipped == 1
    assert report.photos == (4 if immich._groups else 5)


def test_immich_is_never_written(immich: ImmichDatabase, tmp_path: Path) -> None:
    with psycopg.connect(reader(immich)) as connection:
        for statement in (
            "DELETE FROM asset",
            "UPDATE person SET name = ''",
            "CREATE TABLE public.mine (x int)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())
            connection.rollback()
    writes = "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::int FROM pg_stat_user_tables"
    with psycopg.connect(immich.uri, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        before = connection.execute(writes.encode()).fetchone()
        ImmichIndex.sync(tmp_path / "as reader", reader(immich))
        ImmichIndex.sync(tmp_path / "as owner", immich.uri)  # who may write, and does not
        connection.execute("SELECT pg_stat_clear_snapshot()")
        assert connection.execute(writes.encode()).fetchone() == before


def test_an_interrupted_sync_is_completed_by_the_next(
    immich: ImmichDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from setnet.connect import immich_sync as module

    monkeypatch.setattr(module, "BATCH", 2)

    def stop(done: int, photos: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ImmichIndex.sync(tmp_path / "i", reader(immich), stop)
    assert sync(immich, tmp_path / "i").added == 2
    assert len(found(tmp_path / "i", ["Anna", "Ben"])) == 5


def test_names_that_mean_nobody_or_several(immich: ImmichDatabase, tmp_path: Path) -> None:
    immich.add_person("Ben ", group="another Ben")
    sync(immich, tmp_path / "i")
    bad = {
        ("Dora",): "Immich knows nobody called 'Dora': people are 'Ben', 'Anna', 'Ben '",
        ("Ben",): "2 people are called 'Ben': name one by id",
        ("Anna", "anna"): "Anna is asked for twice",
        (): "nobody is asked for",
    }
    for people, message in bad.items():
        with pytest.raises(InvalidInputError, match=message):
            found(tmp_path / "i", people)
    assert "both" in found(tmp_path / "i", [str(uuid_of("Ben"))])


def test_an_owner_has_photos_and_people_of_their_own(immich: ImmichDatabase, tmp_path: Path) -> None:
    immich.add_person("anna", owner=(other := uuid_of("other user")), group="their Anna")
    immich.add_photo("theirs", ["their Anna"], owner=other)
    sync(immich, tmp_path / "i")
    with pytest.raises(InvalidInputError, match="2 people are called 'Anna'"):
        found(tmp_path / "i", ["Anna"])
    assert found(tmp_path / "i", ["Anna"], owner=str(other)) == {"theirs": ("anna",)}
    assert "theirs" not in found(tmp_path / "i", ["Anna"], owner=str(OWNER))
    before = Conditions.parse(None, "2019")
    assert found(tmp_path / "i", ["Anna"], owner=str(other), conditions=before) == {}
    with pytest.raises(InvalidInputError, match=rf"{OWNER} \(6 photos\), {other} \(1 photos\)"):
        found(tmp_path / "i", ["Anna"], owner="nobody")


def test_wrong_databases_and_folders(immich: ImmichDatabase, server: PostgresServer, tmp_path: Path) -> None:
    with pytest.raises(NotAnIndexError, match="`setnet immich sync` fetches them"):
        ImmichIndex(tmp_path / "none")
    with pytest.raises(NotAnIndexError, match="has no tables of Immich in schema 'public'"):
        ImmichIndex.sync(tmp_path / "i", server.new_database("no immich"))
    assert not (tmp_path / "i").exists()
    sync(immich, tmp_path / "i")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").touch()
    with pytest.raises(InvalidInputError, match="is not empty and holds no faces of Immich"):
        sync(immich, tmp_path / "mine")
    (tmp_path / "i" / "immich.json").write_text("[]")
    with pytest.raises(StorageError, match=r"immich.json is damaged .*delete it, and `setnet immich sync`"):
        ImmichIndex(tmp_path / "i")
    assert sync(immich, tmp_path / "i").added == 0  # writes it again
    immich.run("ALTER TABLE face_search ALTER embedding TYPE vector(8) USING subvector(embedding, 1, 8)")
    with pytest.raises(InvalidInputError, match="holds 512-D faces, Immich has 8-D ones now"):
        sync(immich, tmp_path / "i")
    immich.run("ALTER TABLE asset DROP COLUMN visibility")
    with pytest.raises(NotAnIndexError, match="'asset' has no column 'visibility' that this role may read"):
        ImmichIndex.sync(tmp_path / "j", reader(immich))
