"""The API's description of itself, and answers of server and command line that fit it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from setnet.client import Hits, People, Photo, Photos
from setnet.library import Library, PhotoQuery
from setnet.web.examples import EXAMPLES

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"


def references(part: Any) -> Iterator[str]:
    """Yield every `$ref` of a document."""
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from references(inner)


def test_every_reference_leads_to_a_schema(shared: TestClient) -> None:
    document = shared.get("/api/v1/openapi.json").json()
    found = set(references(document))
    assert "#/components/schemas/PersonQuery" in found
    for reference in found:
        target = document
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]
        assert target["type"] == ("array" if reference.endswith("/Box") else "object")


def test_every_body_is_described(shared: TestClient) -> None:
    document = shared.get("/api/v1/openapi.json").json()
    described = {
        (verb, path)
        for path, operations in document["paths"].items()
        for verb, operation in operations.items()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    }
    assert ("post", "/api/v1/search") in described
    writing = {
        (verb, path)
        for path, operations in document["paths"].items()
        for verb in operations
        if verb in ("post", "put", "patch") and path != "/api/v1/faces"
    }
    assert writing <= described


def test_every_body_has_an_example_that_it_takes(shared: TestClient) -> None:
    routes = [r for r in shared.app.routes if isinstance(r, APIRoute) and r.body_field]  # type: ignore[attr-defined]
    assert {route.name for route in routes} == EXAMPLES.keys()
    document = str(shared.get("/api/v1/openapi.json").json())
    for route in routes:
        taken: Any = route.body_field and route.body_field.field_info.annotation
        TypeAdapter(taken).validate_python(EXAMPLES[route.name])
        assert str(EXAMPLES[route.name]) in document


def test_a_search_gives_the_same_json_on_both_doors(shared: TestClient, made: Any) -> None:
    with Library.open(made.library) as library:
        photo = next(p for p in library.photos.all_photos() if len(p.faces) == 3)
        vectors = library.photos.descriptors(photo.id)[:2]
        command_line = library.search(PhotoQuery([np.asarray(v) for v in vectors], k=3, at_least=1)).to_dict()
    people = [{"name": f"person {n}", "descriptors": [v.tolist()]} for n, v in enumerate(vectors, 1)]
    served = shared.post(f"{API}/search", json={"people": people, "limit": 3}).json()
    Hits.model_validate(served)
    Hits.model_validate(command_line)
    assert served["hits"] == command_line["hits"]
    assert set(served) == {*command_line, "cursor"}


def test_a_hit_keeps_the_fields_that_programs_rely_on(made: Any) -> None:
    with Library.open(made.library) as library:
        photo = next(p for p in library.photos.all_photos() if p.path.name == "three.jpg")
        hit = library.search(list(library.photos.descriptors(photo.id)), k=1)[0].to_dict()
    assert hit["photo"] == str(made.photos / "2019" / "three.jpg")
    assert hit["id"] == photo.id
    assert len(hit["faces"]) == 3
    assert hit["taken"] == "2019-01-02T03:04:05"
    assert 2.9 < hit["score"] < 3.1
    match = hit["matches"][1]
    assert (match["person"], match["face"]) == ("person 2", 1)
    assert match["similarity"] == pytest.approx(1.0, abs=1e-3)
    assert match["box"] == hit["faces"][match["face"]]["box"]


def test_photos_and_people_fit_their_models(shared: TestClient) -> None:
    photos = Photos.model_validate(shared.get(f"{API}/photos?limit=2").json())
    details = Photo.model_validate(shared.get(f"{API}/photos/{photos.photos[0].id}").json())
    assert details.model_dump(exclude={"faces"}) == photos.photos[0].model_dump(exclude={"faces"})
    People.model_validate(shared.get(f"{API}/people").json())


def test_an_index_report_has_lists_and_counts(own: TestClient, made: Any) -> None:
    own.post(f"{API}/index", json={"folders": [str(made.photos)], "retry": True})
    assert own.get(f"{API}/index/events?once=true").status_code == 200  # ends with the run
    report = own.get(f"{API}/index").json()["report"]
    assert report["failed_count"] == len(report["failed"]) == 1
    assert report["failed"][0]["photo"].endswith("broken.jpg")
    assert (report["vanished"], report["vanished_count"]) == ([], 0)


def test_every_operation_has_a_name_of_its_own_and_a_typed_answer(shared: TestClient) -> None:
    document = shared.get(f"{API}/openapi.json").json()
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)
    for operation in operations:
        for status, answer in operation["responses"].items():
            content = answer.get("content", {})
            if status.startswith("2") and "application/json" in content:
                assert "$ref" in content["application/json"]["schema"], operation["operationId"]
    assert {"bearer", "header", "cookie"} == set(document["components"]["securitySchemes"])
