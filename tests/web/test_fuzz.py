"""Requests generated from the API's own description by schemathesis: the answers fit it, and none is a 500.

`tests/fuzz/targets/http_requests.py` goes further from the description; here answers are compared with it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

from setnet.web import create_app

pytestmark = pytest.mark.xdist_group("web-fuzz")


_SOAK = bool(os.environ.get("SETNET_SOAK"))
# Its answer does not end by itself.
_ENDLESS = "/api/v1/index/events"


@pytest.fixture(scope="module")
def schema(made: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    place: Path = tmp_path_factory.mktemp("fuzz")
    shutil.copytree(made.library, place / "library")
    app = create_app(place / "library")
    loaded = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers={"Host": "localhost"})
    yield loaded
    import asyncio

    asyncio.run(app.state.server.close())


def _limits(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=not _SOAK,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )


def _fuzz(schema: Any, examples: int) -> int:
    """Call each operation `examples` times with what its description allows, and with what it does not."""
    calls = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path == _ENDLESS:
            continue
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @_limits(examples)
            @given(case=operation.as_strategy(generation_mode=mode))
            def call(case: Any) -> None:
                nonlocal calls
                calls += 1
                case.call_and_validate(checks=[not_a_server_error, response_schema_conformance], timeout=60)

            with suppress(Unsatisfiable):  # an operation without parameters cannot be called wrongly
                call()
    return calls


def test_no_request_ends_in_a_server_error(schema: Any) -> None:
    assert _fuzz(schema, 1) > 100


@pytest.mark.soak
@pytest.mark.timeout(7200)  # an hour or so
def test_no_request_ends_in_a_server_error_for_long(schema: Any) -> None:
    assert _fuzz(schema, 400) > 10_000
