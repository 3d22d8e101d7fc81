"""Vectors without photos: JSON and npz."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from setnet.web import WebSettings

pytestmark = pytest.mark.xdist_group("web-api")
SETS = "/api/v1/sets"
NPZ = {"Content-Type": "application/x-npz"}


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


@pytest.fixture
def outfits(shared: TestClient) -> Iterator[str]:
    at = f"{SETS}/outfits"
    assert shared.put(at, json={"dim": 3}).status_code == 201
    yield at
    shared.delete(at)


def items() -> dict[str, Any]:
    return {
        "items": [
            {"id": "party", "elements": [[1, 0, 0], [0, 1, 0]], "attributes": {"year": 2020}},
            {"id": "office", "elements": [[0, 0, 1], [0, 1, 0]], "attributes": {"year": 2021}},
        ]
    }


def test_items_are_added_found_filtered_and_deleted(shared: TestClient, outfits: str) -> None:
    assert shared.post(f"{outfits}/items", json=items()).json() == {"added": 2}
    found = shared.post(f"{outfits}/search", json={"query": [[1, 0, 0], [0, 1, 0]]}).json()
    assert [hit["id"] for hit in found["hits"]] == ["party", "office"]
    assert found["searched"] == 2
    assert found["hits"][0]["matches"][0] == {
        "person": 0,
        "query_element": 0,
        "element": 0,
        "similarity": 1.0,
    }
    later = shared.post(
        f"{outfits}/search", json={"query": [[1, 0, 0]], "where": {"year": {">=": 2021}}}
    ).json()
    assert [hit["id"] for hit in later["hits"]] == ["office"]
    assert shared.request("DELETE", f"{outfits}/items", json={"ids": ["party"]}).json() == {"deleted": 1}
    assert shared.get(outfits).json()["items"] == 1
    assert shared.request("DELETE", f"{outfits}/items", json={"ids": ["party"]}).status_code == 422


def test_npz_says_the_same_as_json(shared: TestClient, outfits: str) -> None:
    body = npz(
        ids=np.array(["party", "office"]),
        elements=np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]], np.float32),
        counts=np.array([2, 2]),
        attributes=np.array(['{"year": 2020}', '{"year": 2021}']),
    )
    assert shared.post(f"{outfits}/items", content=body, headers=NPZ).json() == {"added": 2}
    by_npz = shared.post(
        f"{outfits}/search", content=npz(query=np.eye(3)[:2], k=np.array(1)), headers=NPZ
    ).json()
    by_json = shared.post(f"{outfits}/search", json={"query": [[1, 0, 0], [0, 1, 0]], "k": 1}).json()
    assert by_npz["hits"] == by_json["hits"]


def test_people_is_the_deprecated_name_of_query(shared: TestClient, outfits: str) -> None:
    shared.post(f"{outfits}/items", json=items())
    vectors = [[1, 0, 0], [0, 1, 0]]
    expected = shared.post(f"{outfits}/search", json={"query": vectors}).json()["hits"]
    by_json = shared.post(f"{outfits}/search", json={"people": vectors})
    by_npz = shared.post(f"{outfits}/search", content=npz(people=np.array(vectors)), headers=NPZ)
    assert by_json.json()["hits"] == by_npz.json()["hits"] == expected
    both = {"query": vectors, "people": vectors}
    assert shared.post(f"{outfits}/search", json=both).status_code == 422


def test_a_query_without_vectors_of_the_sets_dimension_is_refused(shared: TestClient, outfits: str) -> None:
    shared.post(f"{outfits}/items", json=items())
    for query in ([], [[1, 0]], [[1, 0, 0], [1, 0]], [[[1, 0, 0], [1, 0]]]):
        assert shared.post(f"{outfits}/search", json={"query": query}).status_code == 422, query
    for body in (npz(k=np.array(1)), npz(query=np.ones(3)), npz(query=np.ones((17, 3)))):
        answer = shared.post(f"{outfits}/search", content=body, headers=NPZ)
        assert answer.status_code == 422
        assert "'query'" in answer.json()["detail"]


def test_a_set_says_what_it_holds(shared: TestClient, outfits: str) -> None:
    shared.post(f"{outfits}/items", json=items())
    stats = shared.get(outfits).json()
    assert (stats["items"], stats["elements"], stats["dim"], stats["precision"]) == (2, 4, 3, "float32")
    assert stats["bytes"] == sum(stats["bytes_by_file"].values())


def test_several_examples_of_one_vector(shared: TestClient, outfits: str) -> None:
    shared.post(f"{outfits}/items", json=items())
    found = shared.post(
        f"{outfits}/search", json={"query": [[[1, 0, 0], [0.9, 0.1, 0]], [0, 1, 0]], "k": 1}
    ).json()
    assert found["hits"][0]["id"] == "party"


@pytest.mark.parametrize(
    "body",
    [
        {"items": [{"id": "a", "elements": [[1, 2]]}]},
        {"items": [{"id": "a", "elements": [[1, 2, 3], [1, 2]]}]},
        {"items": [{"id": "a", "elements": [[0, 0, 0]]}]},
        {"items": [{"id": "a", "elements": [[1e300, 0, 0]]}]},
        {"items": []},
        {"items": [{"id": "", "elements": []}]},
    ],
)
def test_items_that_do_not_fit_are_refused_whole(
    shared: TestClient, outfits: str, body: dict[str, Any]
) -> None:
    assert shared.post(f"{outfits}/items", json=body).status_code == 422
    assert shared.get(outfits).json()["items"] == 0


def test_a_packed_bomb_or_an_object_array_is_refused(
    shared: TestClient, outfits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setnet.web.api.sets._LARGEST_UNPACKED", 8 << 20)
    good = {"ids": np.array(["a"]), "counts": np.array([1])}
    bomb = npz(elements=np.zeros((1_000_000, 3), np.int32), **good)
    assert len(bomb) < 50_000
    answer = shared.post(f"{outfits}/items", content=bomb, headers=NPZ)
    assert answer.status_code == 422
    assert "MB" in answer.json()["detail"]
    pickled = npz(elements=np.array([{}], dtype=object), **good)
    assert shared.post(f"{outfits}/items", content=pickled, headers=NPZ).status_code == 422
    assert shared.post(f"{outfits}/items", content=b"PK no zip", headers=NPZ).status_code == 422
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    assert "ids" in shared.post(f"{outfits}/items", content=empty.getvalue(), headers=NPZ).json()["detail"]


def test_json_items_have_a_lower_limit_than_npz(
    tmp_path: Path, open_client: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def parsed(*_: object) -> None:
        raise AssertionError("no other request is answered while this is parsed")

    monkeypatch.setattr("setnet.web.api.sets.parsed", parsed)
    packed = npz(ids=np.array(["a"]), elements=np.eye(3), counts=np.array([3]))
    with open_client(tmp_path / "library", tmp_path / "sets", WebSettings(max_items_json=100)) as client:
        client.put(f"{SETS}/outfits", json={"dim": 3})
        answer = client.post(f"{SETS}/outfits/items", json=items())
        assert answer.status_code == 413
        assert "100 bytes" in answer.json()["detail"]
        assert "npz" in answer.json()["detail"]
        assert client.post(f"{SETS}/outfits/items", content=packed, headers=NPZ).json() == {"added": 1}


def test_names_and_doubles(shared: TestClient, outfits: str) -> None:
    assert shared.put(outfits, json={"dim": 3}).status_code == 409
    assert shared.get(f"{SETS}/absent").status_code == 404
    assert shared.put(f"{SETS}/..%2Fescape", json={"dim": 3}).status_code in (404, 422)
    assert shared.put(f"{SETS}/-x", json={"dim": 3}).status_code == 422
    assert "outfits" in shared.get(SETS).json()["sets"]
