"""Photos by id and by date, their pictures, their files one by one and as one zip file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image
from PIL.TiffImagePlugin import IFDRational

from setnet.library import Example, Library
from setnet.library.creation import remember_folders
from setnet.web.files import PhotoArchive
from tests.support.invented_photos import face_of, remove, store, store_file

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"


def test_photos_are_listed_latest_first_and_told_in_full(shared: TestClient) -> None:
    first = shared.get(f"{API}/photos?limit=3").json()
    rest = shared.get(f"{API}/photos?limit=3&cursor={first['cursor']}").json()
    ids = [int(photo["id"]) for photo in (*first["photos"], *rest["photos"])]
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == 5
    assert rest["cursor"] is None
    photo = next(p for p in (*first["photos"], *rest["photos"]) if p["name"] == "pair.jpg")
    details = shared.get(f"{API}/photos/{photo['id']}").json()
    assert details["taken"] == "2016-07-14T18:30:00"
    assert len(details["faces"]) == 2
    assert details["faces"][0]["quality"]["size"] > 40


def test_thumbnails_are_upright_small_and_cached(shared: TestClient) -> None:
    photo = shared.get(f"{API}/photos?limit=1").json()["photos"][0]
    url = f"{API}/photos/{photo['id']}/thumbnail"
    answer = shared.get(url, params={"size": 160, "v": photo["version"]})
    assert answer.headers["content-type"] == "image/jpeg"
    assert "immutable" in answer.headers["cache-control"]
    assert (
        shared.get(url, params={"size": 160}, headers={"If-None-Match": answer.headers["etag"]}).status_code
        == 304
    )
    assert shared.get(url, params={"size": 161}).status_code == 422


def test_files_are_the_photos_own_bytes(shared: TestClient, made: Any) -> None:
    photo = next(p for p in shared.get(f"{API}/photos").json()["photos"] if p["name"] == "pair.jpg")
    answer = shared.get(f"{API}/photos/{photo['id']}/file", params={"download": True})
    assert answer.content == Path(made.photos / "2016/pair.jpg").read_bytes()
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["content-security-policy"]


def test_photos_come_as_they_are_on_the_disk(shared: TestClient, made: Any) -> None:
    photos = shared.get(f"{API}/timeline/photos").json()["photos"][:2]
    answer = shared.get(f"{API}/archive", params={"photos": ",".join(p["id"] for p in photos)})
    assert answer.status_code == 200
    assert "attachment" in answer.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == sorted(p["name"] for p in photos)
        for photo in photos:
            assert archive.read(photo["name"]) == Path(photo["photo"]).read_bytes()


def test_names_do_not_collide_and_files_that_are_gone_are_named(made: Any, tmp_path: Path) -> None:
    with Library.open(made.library) as library:
        (photo, other) = library.photos.latest(2)
    twin = tmp_path / photo.path.name
    twin.write_bytes(b"another file of that name")
    photos = [
        photo,
        other._replace(stored_path=bytes(twin)),
        other._replace(stored_path=b"/nowhere/gone.jpg"),
    ]
    data = b"".join(PhotoArchive(photos, [made.photos, tmp_path]).chunks())
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        second = f"{twin.stem} (2){twin.suffix}"
        assert archive.namelist() == [twin.name, second, "not included.txt"]
        assert archive.read(second) == twin.read_bytes()
        assert b"/nowhere/gone.jpg" in archive.read("not included.txt")


@pytest.mark.parametrize("photos", ["", "1,", "a", "1;2", ",".join(["1"] * 501)])
def test_other_lists_than_up_to_500_ids_are_refused(shared: TestClient, photos: str) -> None:
    assert shared.get(f"{API}/archive", params={"photos": photos}).status_code == 422


def test_photos_that_are_not_there_are_no_archive(shared: TestClient) -> None:
    assert shared.get(f"{API}/archive", params={"photos": "999999"}).status_code == 404


def _at(year: int, month: int) -> float:
    return datetime(year, month, 14, 12, tzinfo=UTC).timestamp()


@pytest.fixture
def dated(tmp_path: Path) -> Iterator[Library]:
    with Library.create(tmp_path / "library") as library:
        store(library, {"unknown.jpg": [1]})
        store(library, {f"july-{i}.jpg": [1] for i in range(3)}, _at(2019, 7))
        store(library, {"old.jpg": [2]}, _at(1968, 1))
        store(library, {f"may-{i}.jpg": [] for i in range(2)}, _at(2021, 5))
        yield library


@pytest.fixture
def timeline(dated: Library, tmp_path: Path, open_client: Callable[..., Any]) -> Iterator[TestClient]:
    with open_client(dated.path) as client:
        yield client


def _names_by_date(timeline: TestClient, **place: int) -> list[str]:
    answer = timeline.get(f"{API}/timeline/photos", params=place)
    assert answer.status_code == 200, answer.text
    return [photo["name"] for photo in answer.json()["photos"]]


def test_months_are_counted_latest_first_and_unknown_times_last(timeline: TestClient) -> None:
    answer = timeline.get(f"{API}/timeline").json()
    assert answer["total"] == 7
    assert [(each["month"], each["photos"]) for each in answer["months"]] == [
        ("2021-05", 2),
        ("2019-07", 3),
        ("1968-01", 1),
        (None, 1),
    ]


def test_any_part_of_the_list_is_read_by_its_place(timeline: TestClient) -> None:
    everything = _names_by_date(timeline)
    assert everything == [
        "may-1.jpg",
        "may-0.jpg",
        *(f"july-{i}.jpg" for i in (2, 1, 0)),
        "old.jpg",
        "unknown.jpg",
    ]
    assert _names_by_date(timeline, cursor=2, limit=3) == everything[2:5]
    assert _names_by_date(timeline, cursor=7) == []
    assert timeline.get(f"{API}/timeline/photos", params={"limit": 5}).json()["cursor"] == "5"


def test_copies_and_bursts_are_one_photo_of_the_list_and_of_a_person(
    timeline: TestClient, dated: Library
) -> None:
    collapsed = {"collapse": True}
    assert timeline.get(f"{API}/timeline", params=collapsed).json() == {
        "months": [
            {"month": "2021-05", "photos": 1},
            {"month": "2019-07", "photos": 1},
            {"month": "1968-01", "photos": 1},
            {"month": None, "photos": 1},
        ],
        "total": 4,
        "photos": 7,
    }
    listed = timeline.get(f"{API}/timeline/photos", params=collapsed | {"cursor": 1, "limit": 1}).json()
    (july,) = listed["photos"]
    assert listed["cursor"] == "2"
    assert july["name"] == "july-2.jpg"
    assert [Path(other["photo"]).name for other in july["others"]] == ["july-1.jpg", "july-0.jpg"]
    assert july["copies"] == []

    dated.people.add("Anna", [Example(face_of(1))])
    photos = timeline.get(f"{API}/people/Anna/photos", params=collapsed).json()
    assert [(each["name"], len(each["others"])) for each in photos["photos"]] == [
        ("july-0.jpg", 2),
        ("unknown.jpg", 0),
    ]
    assert photos["total"] == 4


def test_conditions_and_people_who_must_not_be_there_narrow_the_list(
    timeline: TestClient, dated: Library
) -> None:
    dated.people.add("Anna", [Example(face_of(1))])
    for conditions, names in {
        ("after=2019", "before=2020"): ["july-2.jpg", "july-1.jpg", "july-0.jpg"],
        ("max_faces=0",): ["may-1.jpg", "may-0.jpg"],
        ("without=Anna",): ["may-1.jpg", "may-0.jpg", "old.jpg"],
        ("without=Anna", "min_faces=1"): ["old.jpg"],
        ("kind=video",): [],
        ("folder=/nowhere",): [],
    }.items():
        query = "&".join(conditions)
        assert [p["name"] for p in timeline.get(f"{API}/timeline/photos?{query}").json()["photos"]] == names
        answer = timeline.get(f"{API}/timeline?{query}").json()
        assert answer["total"] == sum(month["photos"] for month in answer["months"]) == len(names)
    everything = timeline.get(f"{API}/timeline?kind=photo").json()
    assert everything["total"] == 7
    assert timeline.get(f"{API}/timeline?without=Nobody").status_code == 404
    (folder,) = timeline.get(f"{API}/timeline/folders").json()["folders"]
    assert folder["photos"] == 7
    inside = timeline.get(f"{API}/timeline", params={"folder": folder["path"]})
    assert inside.json() == everything


def test_the_list_follows_the_library(timeline: TestClient, dated: Library) -> None:
    (latest, *_) = timeline.get(f"{API}/timeline/photos").json()["photos"]
    remove(dated, [latest["id"]])
    assert timeline.get(f"{API}/timeline").json()["total"] == 6
    assert _names_by_date(timeline, limit=1) == ["may-0.jpg"]


def test_the_camera_is_read_from_the_file_and_damaged_exif_is_none(
    tmp_path: Path, open_client: Callable[..., Any]
) -> None:
    names = ("told.jpg", "damaged.jpg", "bare.png", "no-photo.jpg")
    files = [tmp_path / "photos" / name for name in names]
    with Library.create(tmp_path / "library") as library:
        remember_folders(library._database, [bytes(tmp_path / "photos")])
        for file in files:
            store_file(library, file, [1])
    told, damaged, bare, no_photo = files
    exif = Image.Exif()
    exif.update({0x010F: "Canon", 0x0110: "Canon EOS 80D\0"})
    exif.get_ifd(0x8769).update({0x829A: 0.004, 0x829D: 2.8, 0x8827: (400, 0), 0xA434: b"50mm"})
    exif.get_ifd(0x8825).update({1: "S", 2: (33.0, 30.0, 0.0), 3: "E", 4: (151.0, 0.0, 36.0)})
    Image.new("RGB", (8, 8)).save(told, exif=exif)
    Image.new("RGB", (8, 8)).save(bare)
    exif.get_ifd(0x8769).update({0x829A: 0.0, 0x920A: IFDRational(1, 0)})
    exif.get_ifd(0x8825).update({2: (900.0, 0.0, 0.0), 4: (151.0, 0.0)})
    Image.new("RGB", (8, 8)).save(damaged, exif=exif)
    no_photo.write_bytes(b"no photo")
    with open_client(tmp_path / "library") as client:
        facts = {
            photo["name"]: client.get(f"{API}/photos/{photo['id']}/camera").json()
            for photo in client.get(f"{API}/photos").json()["photos"]
        }
        assert client.get(f"{API}/photos/999/camera").status_code == 404
    known = {
        "camera": "Canon EOS 80D",
        "lens": "50mm",
        "exposure": 0.004,
        "aperture": 2.8,
        "iso": 400,
        "focal_length": None,
        "latitude": -33.5,
        "longitude": 151.01,
    }
    nothing = dict.fromkeys(known)
    assert facts == {
        "told.jpg": known,
        "damaged.jpg": known | {"exposure": None, "latitude": None, "longitude": None},
        "bare.png": nothing,
        "no-photo.jpg": nothing,
    }


def test_a_person_is_tagged_where_no_face_was_found(own: TestClient) -> None:
    dim = own.get(f"{API}/status").json()["dim"]
    assert own.post(f"{API}/people", json={"name": "Ida", "descriptors": [[1.0] * dim]}).status_code == 201
    photo = own.get(f"{API}/photos").json()["photos"][0]
    at = f"{API}/photos/{photo['id']}/tags"
    box = [0, 0, 3, 2]
    assert own.post(at, json={"person": "ida", "box": box}).json()["name"] == "Ida"
    assert own.post(at, json={"person": "Ida"}).status_code == 422
    assert own.post(at, json={"person": "Nobody"}).status_code == 404
    assert own.post(f"{API}/photos/999/tags", json={"person": "Ida"}).status_code == 404
    tag = {"person": "Ida", "photo_id": photo["id"], "box": box, "face": None}
    assert own.get(f"{API}/photos/{photo['id']}").json()["tags"] == [tag]
    found = own.post(f"{API}/search", json={"people": [{"saved": "Ida"}]}).json()["hits"]
    (match,) = next(hit for hit in found if hit["id"] == photo["id"])["matches"]
    assert (match["face"], match["box"], match["sure"]) == (None, box, True)
    assert own.delete(at, params={"person": "Ida"}).status_code == 200
    assert own.get(f"{API}/photos/{photo['id']}").json()["tags"] == []
