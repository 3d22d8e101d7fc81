"""Groups hardly depend on when and in which order photos came, and are right, also on real faces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet.evaluate.people import read_split
from setnet.faces import FaceSettings
from setnet.library import Library, describe_photos
from studies.grouping import group_quality, pairwise_agreement
from tests.support.invented_photos import store_vectors

LFW = Path(os.environ.get("SETNET_LFW", Path(__file__).parents[3] / "shared" / "data" / "lfw"))
Faces = tuple[NDArray[np.float32], NDArray[np.str_]]


def invented(people: int, seed: int = 0) -> Faces:
    """Return faces of people with one to thirty each, about as similar as real ones: 0.1 and 0.65."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(rng.zipf(1.6, people), 30)
    middle = np.concatenate([[3.6], np.zeros(127)])
    means = rng.normal(size=(people, 128)) + middle
    owner = np.repeat(np.arange(people), sizes)
    vectors = means[owner] + 0.72 * rng.normal(size=(len(owner), 128))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), owner.astype(np.str_)


def grouped(library: Library, vectors: NDArray[np.float32], batches: int = 1) -> list[int]:
    """Store photos of one face each, in batches that are grouped, and return the group of each."""
    for part in np.array_split(np.arange(len(vectors)), batches):
        store_vectors(library, {f"{n}": vectors[n : n + 1] for n in part.tolist()})
        library.groups.update()
    found = {
        int(face.path.decode().rpartition("/")[2]): group for group, face in library.groups.all_members()
    }
    return [found[n] for n in range(len(vectors))]


@pytest.fixture
def libraries(tmp_path: Path) -> Iterator[tuple[Library, Library]]:
    """Two libraries without photos."""
    with Library.create(tmp_path / "one") as one, Library.create(tmp_path / "other") as other:
        yield one, other


def check(faces: Faces, libraries: tuple[Library, Library]) -> None:
    vectors, people = faces
    at_once = grouped(libraries[0], vectors)
    quality = group_quality(at_once, people)
    assert quality.precision >= 0.98
    assert quality.recall >= 0.92
    assert quality.f1 >= 0.95
    assert quality.found >= 0.9
    order = np.random.default_rng(1).permutation(len(vectors))
    in_batches = np.array(grouped(libraries[1], vectors[order], batches=10))
    assert pairwise_agreement(in_batches, np.array(at_once)[order]) >= 0.99


def test_ten_batches_in_another_order_give_the_groups_of_all_at_once(
    libraries: tuple[Library, Library],
) -> None:
    check(invented(150), libraries)


@pytest.fixture(scope="module")
def lfw(tmp_path_factory: pytest.TempPathFactory) -> Faces:
    """Sixty people of LFW's test half with two to eight photos each, and 120 others with one."""
    place = tmp_path_factory.mktemp("lfw")
    test = read_split().test
    folders = [folder for folder in sorted((LFW / "images").iterdir()) if folder.name in test]
    sizes = {folder: len(list(folder.iterdir())) for folder in folders}
    several = [folder for folder in folders if sizes[folder] >= 2][::8][:60]
    singles = [folder for folder in folders if sizes[folder] == 1][::16][:120]
    for folder in [*several, *singles]:
        (place / folder.name).mkdir()
        for photo in sorted(folder.iterdir())[:8]:
            (place / folder.name / photo.name).symlink_to(photo)
    describe_photos([place], place / "faces.npz", FaceSettings())
    with np.load(place / "faces.npz", allow_pickle=False) as file:
        known = file["labels"] != ""
        return file["descriptors"][known], file["labels"][known]


@pytest.mark.skipif(
    not (LFW / "images").is_dir(), reason=f"LFW is not at {LFW}; set SETNET_LFW to its folder"
)
@pytest.mark.timeout(900)
def test_so_they_do_with_real_people(lfw: Faces, libraries: tuple[Library, Library]) -> None:
    check(lfw, libraries)


@pytest.mark.parametrize("others", [0, 3, 12, 20, 40])
def test_a_person_who_is_in_most_photos_is_one_group(libraries: tuple[Library, Library], others: int) -> None:
    vectors, people = invented(100, seed=3)
    largest = max(set(people.tolist()), key=people.tolist().count)
    rows = [*np.flatnonzero(people == largest), *np.flatnonzero(people != largest)[::7][:others]]
    quality = group_quality(grouped(libraries[0], vectors[rows]), people[rows])
    assert quality.f1 > 0.97
