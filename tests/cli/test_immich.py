"""`setnet immich` as a user runs it, on a real server with Immich's tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import answered, called
from tests.support.immich_database import ImmichDatabase, uuid_of

pytestmark = pytest.mark.xdist_group("postgres")


def test_from_a_database_to_links(uri: str, tmp_path: Path) -> None:
    immich = ImmichDatabase(uri, groups=False)
    immich.add_person("Anna")
    immich.add_person("Ben")
    immich.add_person("", group="nameless")
    immich.add_photo("both", ["Anna", "Ben"])
    immich.add_photo("anna", ["Anna"], "2018-01-01 12:00:00+00")
    place = ("--faces", tmp_path / "faces")
    assert "`setnet immich sync` fetches them" in called("immich", "people", *place, code=2)[1]
    assert answered("immich", "sync", uri, *place)["added"] == 2
    assert "0 added" in called("immich", "sync", uri, *place)[0]
    listed = answered("immich", "people", *place)["people"]
    assert [(person["name"], person["photos"]) for person in listed] == [("Anna", 2), ("Ben", 1)]
    assert len(answered("immich", "people", "--all", *place)["people"]) == 3
    hits = answered("immich", "search", "anna", "ben", "--link-base", "https://p.example", *place)["hits"]
    assert [hit["link"] for hit in hits] == [
        f"https://p.example/photos/{uuid_of(n)}" for n in ("both", "anna")
    ]
    out, _ = called("immich", "search", "anna", "ben", "--all", *place)
    assert "both.jpg" in out
    assert "anna.jpg" not in out
    assert answered("immich", "search", "anna", "--before", "2019", *place)["hits"][0]["file"] == "anna.jpg"
    assert answered("immich", "search", "ben", "--only", *place, code=1) == {"hits": []}
    assert "Immich knows nobody called 'carl'" in called("immich", "search", "carl", *place, code=2)[1]
    assert uri not in "".join(path.read_text("latin-1") for path in (tmp_path / "faces").glob("*.json"))
