"""Every example in the README and the docs runs or can be parsed, and every link leads somewhere."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown.extensions.toc import slugify
from PIL import Image

from setnet import system
from setnet.cli.app import command
from tests.support.command_line import setnet

REPOSITORY = Path(__file__).parents[1]
DOCS = REPOSITORY / "docs"
PAGES = [REPOSITORY / "README.md", *sorted(DOCS.rglob("*.md"))]
PARSERS: dict[str, Callable[[str], Any]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
    "text": str,
    "sql": str,
    "ini": lambda text: configparser.ConfigParser(interpolation=None).read_string(text),
}
# Who is in which photo, from left to right: Anna is P001, Ben P003 and Carl P005.
ALBUM = {
    "2016/beach.jpg": ("P001", "P003"),
    "2016/garden.jpg": ("P003",),
    "2018/walk.jpg": ("P001", "P010"),
    "2019/party.jpg": ("P005", "P001", "P003"),
    "2019/lake.jpg": ("P003", "P005"),
}
# These begin before the first index run; all others with an indexed album, and Anna and Ben saved.
FROM_SCRATCH = {"README.md", "index.md", "install.md", "tutorials/browser.md", "tutorials/terminal.md"}
OPTIONAL = ("lancedb", "qdrant_edge", "wordllama")  # what no extra for users brings: tried by `make soak`
TABLE, IMMICH = "postgresql://me@localhost/photos", "postgresql://setnet@localhost/immich"


@dataclass(frozen=True)
class Fence:
    """A fenced example: its language, its text and the line it begins on."""

    language: str
    text: str
    line: int


def fences(page: Path) -> Iterator[Fence]:
    """Yield the examples of a page."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield Fence(found[1].strip(), found[2], text.count("\n", 0, found.start()) + 1)


def name_of(page: Path) -> str:
    return str(page.relative_to(DOCS if DOCS in page.parents else REPOSITORY))


def runnable(page: Path) -> list[Fence]:
    return [fence for fence in fences(page) if fence.language in ("sh", "python")]


def libraries_of(page: Path) -> list[str]:
    """Return what a page's examples need besides setnet's extras."""
    text = "".join(fence.text for fence in runnable(page))
    return re.findall(rf"^import ({'|'.join(OPTIONAL)})", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_example_says_what_it_is_and_can_be_parsed(page: Path) -> None:
    for fence in fences(page):
        if fence.language not in ("sh", "python"):
            assert fence.language in PARSERS, f"{page}:{fence.line}: fence it as text, or as what it is"
            PARSERS[fence.language](fence.text)


@pytest.mark.parametrize("file", sorted(REPOSITORY.glob("examples/machines/*")), ids=lambda file: file.name)
def test_every_service_can_be_parsed_and_calls_commands_that_there_are(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    PARSERS["yaml" if file.suffix == ".yaml" else "ini"](text)
    calls = re.findall(r"setnet (index|serve) ([^\"\n]*)", text)
    assert calls
    for name, words in calls:
        known = {option for parameter in command(name).params for option in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", words)) <= known


def without_fences(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", sorted({*PAGES, *REPOSITORY.glob("*.md")}), ids=name_of)
def test_every_link_leads_to_a_file_and_its_heading(page: Path) -> None:
    links = [link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", without_fences(page))]
    missing = []
    for target, _, heading in links:
        if "://" in target or "reference/" in target:  # the reference is generated
            continue
        file = page.parent / target if target else page
        headings = re.findall(r"^#+ (.+)$", without_fences(file), re.MULTILINE) if heading else []
        if not file.exists() or (heading and heading not in {slugify(one, "-") for one in headings}):
            missing.append(f"{target}#{heading}")
    assert missing == []


@pytest.fixture(scope="session")
def album(
    compose: Callable[..., None],
    portrait_file: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A home folder with photos and portraits, and no library yet."""
    home = tmp_path_factory.mktemp("docs") / "album"
    for tile, (name, people) in enumerate(ALBUM.items(), 1):
        compose(home / "Photos" / name, people, tile, f"{name[:4]}:07:14 18:30:00")
    for name, person in (("anna", "P001"), ("ben", "P003"), ("carl", "P005")):
        shutil.copy(portrait_file(person), home / f"{name}.jpg")
    shutil.copy(home / "Photos/2019/party.jpg", home / "group.jpg")
    with Image.open(home / "Photos/2019/lake.jpg") as photo:
        photo.resize((photo.width * 3 // 4, photo.height * 3 // 4)).save(home / "Photos/2019/lake-small.jpg")
    return home


@pytest.fixture(scope="session")
def indexed(album: Path) -> Path:
    """The same with a library, kept beside it: the paths in it are those of `home`."""
    home, kept = album.parent / "home", album.parent / "indexed"
    shutil.copytree(album, home)
    with pytest.MonkeyPatch.context() as patch:
        live_in(home, patch)
        for words in ("index Photos --workers 1", "people add Anna anna.jpg", "people add Ben ben.jpg"):
            done = setnet(None, *words.split())
            assert done.returncode == 0, done.stderr
    home.rename(kept)
    return kept


def live_in(home: Path, patch: pytest.MonkeyPatch) -> None:
    """Make a folder the user's home and the current one."""
    patch.chdir(home)
    for name, value in (("HOME", home), ("XDG_DATA_HOME", home / ".local/share"), ("XDG_CONFIG_HOME", home)):
        patch.setenv(name, str(value))
    for name in ("SETNET_LIBRARY", "SETNET_TOKEN"):
        patch.delenv(name, raising=False)


@pytest.fixture
def home(request: pytest.FixtureRequest, album: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fresh copy of the home folder that the page asks for, always at the same place."""
    is_new = name_of(request.node.callspec.params["page"]) in FROM_SCRATCH
    here = album.parent / "home"
    shutil.copytree(album if is_new else request.getfixturevalue("indexed"), here)
    live_in(here, monkeypatch)
    yield here
    monkeypatch.chdir(album)
    shutil.rmtree(here)


def run_line(line: str, home: Path) -> None:
    """Run one line of a shell example: `setnet` in this process if it can, anything else in a shell."""
    if line.startswith("setnet ") and not re.search(r"[|<>&;$*]|--paths", line):
        words = [re.sub(r"^~(?=/|$)", str(home), word) for word in shlex.split(line)[1:]]
        done = setnet(None, *words)
    else:
        commands = home / "bin"
        commands.mkdir(exist_ok=True)
        (commands / "setnet").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m setnet "$@"\n')
        (commands / "setnet").chmod(0o700)
        environment = {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line], env=environment, capture_output=True, text=True
        )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def run_fences(page: Path, home: Path, replaced: dict[str, str]) -> None:
    """Run the examples of a page in their order; names of Python stay."""
    names: dict[str, Any] = {}
    for fence in runnable(page):
        text = fence.text
        for old, new in replaced.items():
            text = text.replace(old, new)
        if fence.language == "python":
            exec(compile("\n" * fence.line + text, str(page), "exec"), names)
            continue
        for line in text.replace("\\\n", " ").splitlines():
            command = re.sub(r"(^|\s)# .*$", "", line).strip()
            if command:
                run_line(command, home)


def immich_server(uri: str) -> str:
    """Fill a database as Immich does, with a photo of Anna and Ben."""
    from tests.support.immich_database import ImmichDatabase

    immich = ImmichDatabase(uri, groups=False)
    for name in ("Anna", "Ben"):
        immich.add_person(name)
    immich.add_photo("both", ["Anna", "Ben"])
    return uri


@pytest.mark.xdist_group("docs")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_of(page), marks=[pytest.mark.soak] if libraries_of(page) else [])
        for page in PAGES
        if runnable(page)
    ],
)
def test_every_example_of_the_page_runs(page: Path, home: Path, request: pytest.FixtureRequest) -> None:
    text = "".join(fence.text for fence in runnable(page))
    for library in libraries_of(page):
        pytest.importorskip(library)
    replaced = {}
    with ExitStack() as stack:
        if "localhost:8422" in text:
            from tests.support.live_server import server_here

            url = stack.enter_context(server_here(home / ".local/share/setnet/library"))
            replaced["http://localhost:8422"] = url
        if TABLE in text:
            replaced[TABLE] = request.getfixturevalue("uri")
        if IMMICH in text:
            replaced[IMMICH] = immich_server(request.getfixturevalue("uri"))
        run_fences(page, home, replaced)


TRACED = """
import json, sys, threading
from contextlib import suppress
from setnet.cli.app import run

crossed = set()
def note(frame, *_):
    crossed.add(frame.f_code.co_filename)

threading.setprofile(note)
sys.setprofile(note)
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    with suppress(SystemExit):
        run()
sys.setprofile(None)
print(*crossed, sep="\\n", file=sys.stderr)
"""


def test_a_photo_becomes_a_hit_by_the_files_that_the_architecture_names(album: Path, tmp_path: Path) -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    walk = text[text.index("**In:**") : text.index("## The packages")]
    named = {name for name in re.findall(r"`(\w+/\w+\.py)`", walk) if not name.startswith("web/")}
    assert len(re.findall(r"^\d+\. `", walk, re.MULTILINE)) == 10
    source = f"{Path(system.__file__).parent}/"
    photo = str(album / "Photos/2016/beach.jpg")
    calls = [["index", photo, "--workers", "0"], ["search", str(album / "ben.jpg"), "--json"]]
    # In a process of its own: in one that has run other tests, some of the calls were not seen.
    command = [sys.executable, "-c", TRACED, json.dumps(calls)]
    environment = os.environ | {"SETNET_LIBRARY": str(tmp_path / "library")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert photo in done.stdout
    crossed = done.stderr.splitlines()
    assert named - {file.removeprefix(source) for file in crossed} == set()
