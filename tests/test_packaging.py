"""What is installed is pinned: exact versions everywhere, and hashes in the container."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs.hooks.commands import ENVIRONMENT
from setnet import __version__

ROOT = Path(__file__).parents[1]
CONTAINER = ("app", "client", "demo", "raw")


def pins(text: str) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)==([^\s\\]+)", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


CONSTRAINTS = pins((ROOT / "constraints.txt").read_text())
LOCK_TEXT = (ROOT / "container.lock").read_text()
LOCK = pins(LOCK_TEXT)


def needed(extras: tuple[str, ...]) -> set[str]:
    """Return the packages that extras of setnet and all their requirements need here."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: set[str] = set()
    todo = [Requirement(text) for text in table["dependencies"]]
    todo += [Requirement(f"setnet[{extra}]") for extra in extras]
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        if name == "setnet":
            for extra in requirement.extras:
                todo += map(Requirement, table["optional-dependencies"][extra])
            continue
        if name in found:
            continue
        found.add(name)
        try:
            texts = requires(name) or []
        except PackageNotFoundError:
            texts = []
        todo += [r for r in map(Requirement, texts) if r.marker is None or r.marker.evaluate({"extra": ""})]
    return found


def test_every_package_of_the_extras_has_an_exact_version() -> None:
    extras = ("app", "client", "raw", "demo", "postgres", "collection", "evaluate", "train", "dev")
    assert needed(extras) - CONSTRAINTS.keys() <= {"setuptools"}  # comes with a virtual environment


def test_the_container_installs_what_its_extras_need_at_the_pinned_versions() -> None:
    assert not needed(CONTAINER) - LOCK.keys()
    assert {name: CONSTRAINTS.get(name) for name in LOCK} == LOCK


def test_photos_bring_one_opencv_and_it_needs_no_desktop() -> None:
    found = {name for name in needed((*CONTAINER, "evaluate", "train")) if name.startswith("opencv")}
    assert found == {"opencv-python-headless"}


def test_every_package_of_the_container_has_hashes() -> None:
    entries = re.split(r"\n(?=\S)", LOCK_TEXT.strip())
    assert len(entries) == len(LOCK)
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)


def test_the_compose_file_keeps_to_the_container_and_to_this_machine() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    service = compose["services"]["setnet"]
    container = (ROOT / service["build"]["dockerfile"]).read_text()
    (volume,) = compose["volumes"]
    (port,) = re.findall(r"^EXPOSE (\d+)", container, re.MULTILINE)
    (kept,) = re.findall(r"^VOLUME (\S+)", container, re.MULTILINE)
    library, photos = service["volumes"]
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert library == f"{volume}:{kept}"
    assert photos.endswith(":ro")
    assert service["environment"].keys() <= ENVIRONMENT.keys()
    assert service["environment"]["SETNET_CACHE"].startswith(f"{kept}/")


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_workflows_build_and_test_every_python_that_is_promised() -> None:
    versions = [found[1] for c in PROJECT["classifiers"] if (found := re.search(r":: (3\.\d+)$", c))]
    ci, release = (
        yaml.safe_load((ROOT / f".github/workflows/{n}.yml").read_text()) for n in ("ci", "release")
    )
    assert ci["jobs"]["test"]["strategy"]["matrix"]["python"] == versions
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp{version.replace('.', '')}-*" for version in versions]
    assert release["jobs"].keys() == {"wheels", "source", "docs", "container", "sbom"}


def test_a_release_has_one_version_one_date_and_addresses_in_one_place() -> None:
    version, date = re.findall(
        r"^## ([\d.]+) - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.M
    )[0]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (version, version, date) == (__version__, citation["version"], str(citation["date-released"]))
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob(".github/**/*.*"),
        *ROOT.glob("src/**/*.py"),
    ]
    host = urlsplit(PROJECT["urls"]["Homepage"]).netloc
    assert [page for page in pages if host in page.read_text(encoding="utf-8")] == []


def test_the_templates_ask_for_no_photo_of_a_real_person() -> None:
    forms = [yaml.safe_load(file.read_text()) for file in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")]
    assert [form["name"] for form in forms if "body" in form]
    assert "no photo" in (ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text()
    assert "No photo" in (ROOT / ".github/PULL_REQUEST_TEMPLATE.md").read_text()
