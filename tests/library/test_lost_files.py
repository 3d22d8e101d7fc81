"""Any one file of a library is lost or cut: what is gone is named, and nothing else is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from invented_photos import face_of, store
from setnet.errors import SetNetError
from setnet.library import Example, Library

PEOPLE = {"Anna": 1, "Ben": 2, "Carl": 3}


@pytest.fixture(params=["closed", "killed"])
def whole(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A library with photos, deleted ones too, and people; as a kill leaves it, or closed."""
    path = tmp_path / "whole"
    with Library.create(tmp_path / "library") as library:
        for n in range(6):
            store(library, {f"{n}-{m}.jpg": [n % 4, (n + m) % 5] for m in range(4)})
        library.forget(["/invented/0-0.jpg", "/invented/3-1.jpg"])
        for name, person in PEOPLE.items():
            library.people.add(name, [Example(face_of(person, 100), "portrait")])
        if request.param == "killed":
            shutil.copytree(tmp_path / "library", path)
    if request.param == "closed":
        shutil.copytree(tmp_path / "library", path)
    return path


def test_any_one_file_lost_or_cut_costs_nothing_in_silence(whole: Path, tmp_path: Path) -> None:
    for file in sorted(path for path in whole.rglob("*") if path.is_file() and path.stat().st_size):
        size = file.stat().st_size
        for end in (None, 0, 1, size // 3, size // 2, size - 1):
            trial = tmp_path / "trial"
            shutil.rmtree(trial, ignore_errors=True)
            shutil.copytree(whole, trial)
            damaged = trial / file.relative_to(whole)
            if end is None:
                damaged.unlink()
            else:
                damaged.write_bytes(file.read_bytes()[:end])
            what = (str(file.relative_to(whole)), end)
            try:
                report = Library.repair(trial)
            except SetNetError:
                continue
            with Library.open(trial) as library:
                assert library.check() == [], what
                photos = {photo.id: photo.path.name for photo in library.photos.all_photos()}
                people = {person.name for person in library.people}
            assert not {"0-0.jpg", "3-1.jpg"} & set(photos.values()), what
            assert len(photos) + report.to_read >= 22 or report.lost, (what, report)
            assert people == set(PEOPLE) or report.lost, (what, report)
