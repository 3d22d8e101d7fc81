"""Requests generated from the API's own description by schemathesis: the answers fit it, and none is a 500.

`tests/fuzz/targets/http_requests.py` goes further from the description; here answers are compared with it.
"""

from __future__ import annotations

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
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import response_schema_conformance

from setnet.web import create_app

pytestmark = pytest.mark.xdist_group("web-fuzz")


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
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )


def _fuzz(schema: Any, examples: int) -> int:
    """Call each operation `examples` times with what its description allows, and with what it does not.

    A wrong answer is noted, not raised: hypothesis would ask again, and may find the library changed by then.
    A busy server may refuse a request.
    """
    calls, wrong = 0, list[str]()
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
                try:
                    response = case.call()
                    is_busy = response.status_code == 503 and response.json().get("code") == "busy"
                    checks = [response_schema_conformance, *([] if is_busy else [not_a_server_error])]
                    case.validate_response(response, checks=checks)
                except (FailureGroup, Exception) as error:
                    wrong.append(f"{case.as_curl_command()}: {error!r}")

            with suppress(Unsatisfiable):  # an operation without parameters cannot be called wrongly
                call()
    assert not wrong, f"{len(wrong)} of {calls} answers: " + "\n".join(wrong[:5])
    return calls


def test_no_request_ends_in_a_server_error(schema: Any) -> None:
    assert _fuzz(schema, 1) > 100


@pytest.mark.soak
@pytest.mark.timeout(7200)  # an hour or so
def test_no_request_ends_in_a_server_error_for_long(schema: Any) -> None:
    assert _fuzz(schema, 400) > 10_000
