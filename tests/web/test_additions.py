"""Photos that other programs send: files that the server keeps, and faces that it gets described."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from setnet.library import Library
from setnet.web import WebSettings
from tests.web.conftest import API


@pytest.fixture
def keeping(made: Any, tmp_path: Path, open_client: Callable[..., Any]) -> Iterator[TestClient]:
    """A server that keeps what it is sent."""
    shutil.copytree(made.library, tmp_path / "library")
    with open_client(tmp_path / "library", WebSettings(uploads=tmp_path / "uploads")) as client:
        yield client


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def described(external_id: str, *descriptors: Any) -> dict[str, Any]:
    faces = [
        {"box": [100 * n, 10, 100 * n + 60, 90], "descriptor": np.asarray(d).tolist()}
        for n, d in enumerate(descriptors)
    ]
    return {
        "external_id": external_id,
        "width": 640,
        "height": 480,
        "taken": "2019-07-14T18:30:00",
        "faces": faces,
    }


def send(client: TestClient, *photos: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    answer = client.post(f"{API}/photos", json={"photos": photos, **more})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["photos"]
    return found


def test_a_photo_that_is_sent_is_kept_and_found_and_no_index_run_reads_it_again(
    keeping: TestClient, tmp_path: Path, portrait: Callable[[str], bytes]
) -> None:
    data = portrait("P001") + b"a copy"
    sent = [{"image": encoded(data), "external_id": "DAM/1"}, {"image": encoded(b"no image at all")}]
    good, bad = send(keeping, *sent)
    assert "not a photo" in bad["error"] or "formats" in bad["error"]
    photo = good["photo"]
    assert (photo["external_id"], len(photo["faces"])) == ("DAM/1", 1)
    assert keeping.get(f"{API}/photos/{photo['id']}/file").content == data
    assert keeping.get(f"{API}/photos/{photo['id']}/thumbnail").status_code == 200
    face = keeping.post(f"{API}/faces", content=data, headers={"Content-Type": "image/jpeg"}).json()["faces"][
        0
    ]
    hits = keeping.post(f"{API}/search", json={"people": [{"faces": [face["id"]]}]}).json()["hits"]
    assert photo["id"] == hits[0]["id"] or hits[0]["score"] == pytest.approx(1, abs=1e-3)
    assert send(keeping, *sent)[0]["photo"]["id"] == photo["id"]  # the same again
    assert (
        "is that of photo"
        in send(keeping, {"image": encoded(portrait("P003")), "external_id": "DAM/1"})[0]["error"]
    )
    assert len([*(tmp_path / "uploads").iterdir()]) == 1
    with Library.open(tmp_path / "library") as library:
        report = library.index([tmp_path / "uploads"], workers=0)
        assert (report.unchanged, report.added, report.moved) == (1, 0, 0)
        assert not library.check()


def test_faces_of_a_photo_kept_elsewhere_are_found_replaced_and_forgotten(
    keeping: TestClient, tmp_path: Path
) -> None:
    ann, ben = np.eye(128)[:2]
    first, wrong = send(
        keeping, described("DAM/17", ann, 3 * ben), described("b", [1.0, 2.0]), descriptor="sface"
    )
    assert "128 finite numbers" in wrong["error"]
    photo = first["photo"]
    assert (photo["photo"], photo["taken"]) == ("external://DAM/17", "2019-07-14T18:30:00")
    body = {"people": [{"descriptors": [ann.tolist()]}, {"descriptors": [ben.tolist()]}], "at_least": 2}
    (hit,) = keeping.post(f"{API}/search", json=body).json()["hits"]
    assert (hit["id"], [match["face"] for match in hit["matches"]]) == (photo["id"], [0, 1])
    assert "another program" in keeping.get(f"{API}/photos/{photo['id']}/thumbnail").json()["detail"]
    assert keeping.get(f"{API}/photos?external_id=DAM/17").json()["photos"][0]["id"] == photo["id"]

    (again,) = send(keeping, described("DAM/17", ann), descriptor="sface")
    assert (again["photo"]["id"], len(again["photo"]["faces"])) == (photo["id"], 1)
    assert keeping.post(f"{API}/search", json=body).json()["hits"] == []
    with Library.open(tmp_path / "library") as library:
        assert library.index(workers=0).vanished == ()
        failures: list[Path] = []
        library.photos.duplicates(workers=0, on_failure=lambda path, _: failures.append(path))
        assert failures == []
    assert keeping.post(f"{API}/forget/folder", json={"folder": "external://DAM/17"}).json() == {"photos": 1}
    assert keeping.get(f"{API}/photos/{photo['id']}").status_code == 404


@pytest.mark.parametrize(
    ("photo", "message"),
    [
        ({}, "send an image, or faces"),
        ({"external_id": "a", "faces": []}, "width and height"),
        ({"image": "", "width": 3}, "without faces and size"),
        ({"image": "", "external_id": "a\nb"}, "printable"),
        (described("a", [1.0]) | {"faces": [{"box": [5, 5, 5, 9], "descriptor": [1.0]}]}, "x0 < x1"),
    ],
)
def test_what_is_no_photo_is_answered_with_a_sentence(
    shared: TestClient, photo: dict[str, Any], message: str
) -> None:
    answer = shared.post(f"{API}/photos", json={"photos": [photo]})
    assert answer.status_code == 422
    assert message in answer.text


def test_descriptors_of_another_model_and_photos_without_a_folder_for_them_are_not_added(
    shared: TestClient,
) -> None:
    other, image = send(
        shared, described("a", np.ones(128)), {"image": encoded(b"\xff\xd8\xff")}, descriptor="other"
    )
    assert "descriptors of 'sface', not of 'other'" in other["error"]
    assert "--uploads" in image["error"]
