"""The API's description of itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

pytestmark = pytest.mark.xdist_group("web-api")


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
        assert target["type"] == "object"


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
