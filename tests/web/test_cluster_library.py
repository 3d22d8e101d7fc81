"""The page and API of a library whose faces a cluster keeps."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

import invented_photos
from setnet.library import Example, Library
from setnet.web import create_app

API = "/api/v1"


def test_a_library_kept_by_a_cluster_is_served_as_any_other(tmp_path: Path) -> None:
    with Library.create(tmp_path / "library", shards=2) as library:
        invented_photos.store(library, {f"{i}.jpg": [i % 3] for i in range(9)})
        library.save_person("anna", [Example(invented_photos.face_of(1), "anna.jpg")])
    app = create_app(tmp_path / "library")
    with TestClient(app, base_url="http://localhost") as client:
        answer = client.post(f"{API}/search", json={"people": [{"saved": "anna"}]})
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["hits"]) == 3
        assert answer.json()["searched"] == 9
        assert len(client.get(f"{API}/photos").json()["photos"]) == 9
