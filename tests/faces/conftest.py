from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from setnet.faces import Face, Photo, extract_faces, open_photo


@pytest.fixture(scope="session", autouse=True)
def _no_traces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep remembered hashes out of the user's own cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SETNET_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def people() -> Path:
    """The folder of openpeople's ten synthetic persons."""
    spec = importlib.util.find_spec("openpeople")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("openpeople is not installed: pip install '.[demo]'")
    return Path(spec.submodule_search_locations[0]) / "data" / "curated"


@pytest.fixture(scope="session")
def portrait(people: Path) -> Photo:
    return open_photo(people / "P001" / "assets" / "studio_portrait.jpg")


@pytest.fixture(scope="session")
def small_portrait(portrait: Photo) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(portrait.pixels[::4, ::4])


@pytest.fixture(scope="session")
def faces_in(people: Path) -> Callable[[str, str], list[Face]]:
    known: dict[tuple[str, str], list[Face]] = {}

    def look(person: str, photo: str) -> list[Face]:
        if (person, photo) not in known:
            known[person, photo] = extract_faces(people / person / "assets" / f"{photo}.jpg")
        return known[person, photo]

    return look


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder and no user models, so that a test meets a fresh machine."""
    monkeypatch.setenv("SETNET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("SETNET_MODELS", raising=False)
    return tmp_path / "cache"
