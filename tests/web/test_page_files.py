"""The page's files: compressed, kept by browsers for good, and never of two versions together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from setnet.web.page import STATIC, PageFiles

pytestmark = pytest.mark.xdist_group("web-api")
HTML = {"Accept": "text/html,*/*;q=0.8"}


def links_in(client: TestClient, page: str = "/") -> list[str]:
    return re.findall(r'(?:href|src)="(/static/[^"]+)"', client.get(page).text)


@pytest.mark.parametrize("page", ["/", "/docs"])
def test_everything_a_page_needs_is_linked_compressed_and_kept_for_good(
    shared: TestClient, page: str
) -> None:
    links = links_in(shared, page)
    assert len({link.split("/")[2] for link in links}) == 1, "of one version"
    for link in links:
        answer = shared.get(link, headers={"Accept-Encoding": "gzip"})
        assert answer.status_code == 200, link
        assert answer.headers["content-encoding"] == "gzip"
        assert "immutable" in answer.headers["cache-control"]
        assert shared.get(link, headers={"Accept-Encoding": "identity"}).content == answer.content
        again = shared.get(link, headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_a_page_loads_one_script_and_one_style_sheet_with_everything_in_it(shared: TestClient) -> None:
    links = [link.rpartition("/")[2] for link in links_in(shared) if link.endswith((".js", ".css"))]
    assert sorted(links) == ["index.css", "main.js"]
    script = shared.get(next(link for link in links_in(shared) if link.endswith(".js"))).text
    modules = {path for path in (STATIC / "js").rglob("*.js") if path.name not in ("docs.js", "annotate.js")}
    assert script.count("= (() => {\n") == len(modules) - 1  # but for the one that imports the others
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)


def test_modules_that_import_each_other_are_named(tmp_path: Path) -> None:
    for one, other in ("ab", "ba"):
        (tmp_path / f"{one}.js").write_text(
            f'import {{ {other} }} from "./{other}.js";\nexport const {one} = 1;'
        )
    (tmp_path / "page.html").write_text('<script type="module" src="/static/a.js"></script>')
    with pytest.raises(ValueError, match=r"a\.js and b\.js import each other"):
        PageFiles(tmp_path)


def test_the_document_is_asked_for_again_and_its_links_change_with_any_file(
    shared: TestClient, tmp_path: Path
) -> None:
    answer = shared.get("/")
    assert answer.headers["cache-control"] == "no-cache"
    assert shared.get("/", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    versions = []
    for text in ("one", "two"):
        (tmp_path / "a.js").write_text(text)
        versions.append(PageFiles(tmp_path).version)
    assert versions[0] != versions[1]


def test_files_of_another_version_are_not_there(shared: TestClient) -> None:
    (link, *_) = links_in(shared)
    version = link.split("/")[2]
    assert shared.get(link.replace(version, "0" * len(version))).status_code == 404
    assert shared.get(link.replace(f"{version}/", "")).status_code == 404


def test_a_missing_address_is_a_page_for_people_and_json_for_programs(shared: TestClient) -> None:
    page = shared.get("/nothing", headers=HTML)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert 'href="/"' in page.text
    for path, headers in (("/api/v1/nothing", HTML), ("/nothing", {"Accept": "application/json"})):
        answer = shared.get(path, headers=headers)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"
