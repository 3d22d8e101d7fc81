from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from setnet.collect import AnnotationQueue, CollectRun
from setnet.errors import LockedError
from setnet.web.annotation import AnnotationSession, annotation_app
from tests.support.invented_collect import invented_run, name_of

API = "/api/v1/collect"


@pytest.fixture
def run(tmp_path: Path) -> CollectRun:
    run: CollectRun = invented_run(tmp_path, 3, [(0, 1, 10), (1, 2, 11)])
    for row in run.manifest("labels").rows():
        Image.new("RGB", (row["width"], row["height"]), "teal").save(row["photo"])
    return run


@pytest.fixture
def client(run: CollectRun) -> Iterator[TestClient]:
    app = annotation_app(AnnotationSession(run.path))
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as opened:
        yield opened


def test_faces_are_asked_one_by_one_and_answers_are_kept(client: TestClient, run: CollectRun) -> None:
    assert "annotate.js" in client.get("/").text
    first = client.get(f"{API}/next").json()
    question = first["question"]
    assert (question["id"], question["number"], question["query"]) == (0, 3, [name_of(0), name_of(1)])
    assert len(question["best"]) == 3
    assert first["state"] == {"questions": 2, "answered": 0}
    answer = {"question": 0, "answer": "name", "name": name_of(2)}
    second = client.post(f"{API}/answers", json=answer).json()
    assert second["question"]["id"] == 1
    last = client.post(f"{API}/answers", json={"question": 1, "answer": "unknown"}).json()
    assert last["question"] is None
    assert last["state"] == {"questions": 2, "answered": 2}
    back = client.post(f"{API}/undo", json={}).json()
    assert (back["question"]["id"], back["state"]["answered"]) == (1, 1)
    assert [str(answer) for _, answer in AnnotationQueue(run).answers] == [name_of(2)]


def test_photo_and_face_are_shown(client: TestClient) -> None:
    for part in ("photo", "face"):
        shown = client.get(f"{API}/questions/0/{part}")
        assert shown.status_code == 200
        assert shown.headers["content-type"] == "image/jpeg"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"question": 99, "answer": "unknown"}, 404),
        ({"question": 0, "answer": "name"}, 422),
        ({"question": 0, "answer": "unknown", "name": "x"}, 422),
        ({"question": 0, "answer": "name", "name": "Nobody at all"}, 422),
        ({"question": 0, "answer": "perhaps"}, 422),
        ({"question": 0, "answer": "unknown", "annotator": "ann"}, 422),
    ],
)
def test_wrong_answers_are_refused(client: TestClient, body: dict[str, object], status: int) -> None:
    found = client.post(f"{API}/answers", json=body)
    assert found.status_code == status
    assert found.headers["content-type"] == "application/problem+json"
    assert client.get(f"{API}/next").json()["state"]["answered"] == 0


def test_a_photo_outside_the_archive_is_not_shown(
    client: TestClient, run: CollectRun, tmp_path: Path
) -> None:
    photo = Path(next(run.manifest("labels").rows())["photo"])
    secret = tmp_path / "secret.jpg"
    photo.rename(secret)
    photo.symlink_to(secret)
    assert client.get(f"{API}/questions/0/photo").status_code == 403


def test_one_process_at_a_time_takes_answers(run: CollectRun) -> None:
    session = AnnotationSession(run.path)
    with pytest.raises(LockedError, match="another process"):
        AnnotationSession(run.path)
    session.close()
    AnnotationSession(run.path).close()


def test_other_sites_and_host_names_are_refused(client: TestClient) -> None:
    assert client.get(f"{API}/next", headers={"Host": "evil.example"}).status_code == 421
    away = {"Origin": "http://evil.example"}
    assert client.post(f"{API}/undo", json={}, headers=away).status_code == 403
