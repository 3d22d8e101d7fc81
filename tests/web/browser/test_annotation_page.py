"""The questions of `setnet collect`, answered by keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from setnet.collect import AnnotationQueue, CollectRun
from tests.support.invented_collect import invented_run, name_of
from tests.support.live_server import server_of

if TYPE_CHECKING:
    from tests.web.browser.conftest import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is needed for tests in a browser")
expect = sync_api.expect

pytestmark = pytest.mark.xdist_group("web-browser")


@pytest.fixture
def run(tmp_path: Path) -> CollectRun:
    run: CollectRun = invented_run(tmp_path, 3, [(0, 1, 10), (1, 2, 11), (0, 2, 12)])
    for row in run.manifest("labels").rows():
        Image.new("RGB", (row["width"], row["height"]), "teal").save(row["photo"])
    return run


@pytest.fixture
def surface(run: CollectRun, new_page: Callable[..., Page]) -> Iterator[Page]:
    with server_of("collect", "annotate", str(run.path), "--port", "0") as server:
        page = new_page(server.url, "phone")
        yield page
        page.context.close()
    assert page.faults == []


def test_keys_name_skip_drop_and_undo(surface: Page, run: CollectRun) -> None:
    page = surface.open()
    count = page.locator("#collect-count")
    expect(count).to_contain_text("0 of 3 faces")
    expect(page.locator(".collect-text")).to_have_text(f"{name_of(0)} and {name_of(1)}")
    expect(page.locator(".collect-names .button")).to_have_count(3)
    assert surface.axe_findings() == []
    page.keyboard.press("1")
    expect(count).to_contain_text("1 of 3")
    page.keyboard.press("u")
    expect(count).to_contain_text("2 of 3")
    page.keyboard.press("z")
    expect(count).to_contain_text("1 of 3")
    page.keyboard.press("0")
    expect(count).to_contain_text("2 of 3")
    page.keyboard.press("d")
    expect(page.locator(".collect-desk")).to_contain_text("All answered")
    answers = [str(answer) for _, answer in AnnotationQueue(run).answers]
    assert answers[1:] == ["unknown", "drop photo"]
    assert answers[0].startswith("Person")
