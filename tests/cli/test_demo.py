from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("openpeople", reason="the demo's synthetic people are needed: pip install 'setnet[demo]'")

from setnet.cli import demo_album as album_module
from setnet.cli.demo_album import PEOPLE, album, bust, make_album, ndcg_at_10, three_queries
from setnet.errors import InvalidInputError
from setnet.library import Library, find_duplicates
from tests.support.command_line import called


def test_the_album_is_the_same_everywhere_and_varied() -> None:
    photos = album()
    assert photos == album()
    assert len(photos) >= 60
    sizes = [len(photo.people) for photo in photos]
    assert {0, 2, 3, 4, 5} == set(sizes)
    assert all(len(set(photo.people)) == len(photo.people) for photo in photos)
    assert {person for photo in photos for person in photo.people} == set(PEOPLE)


def test_the_questions_have_full_answers() -> None:
    photos = album()
    two, three, without = three_queries(photos)
    assert (len(two.people), len(three.people), len(without.people), len(without.without)) == (2, 3, 2, 1)
    for question in (two, three, without):
        best = [photo for photo in photos if question.relevance(photo) == len(question.people)]
        assert len(best) >= 3
        ideal = sorted(photos, key=question.relevance, reverse=True)
        assert ndcg_at_10(question, ideal[:10], photos) == pytest.approx(100)
        assert ndcg_at_10(question, ideal[::-1][:10], photos) < 50
    assert any(set(without.people) | set(without.without) <= set(photo.people) for photo in photos)


def test_a_cut_out_person_has_no_background() -> None:
    cutout = bust("P003", 0)
    assert cutout.alpha[:20, :20].max() < 0.1 or cutout.alpha[:20, -20:].max() < 0.1
    middle = cutout.alpha[cutout.alpha.shape[0] // 2, cutout.alpha.shape[1] // 2]
    assert middle > 0.95


def test_photos_are_made_once_and_some_lie_on_their_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(album_module, "album", lambda: album()[3:7])
    photos = make_album(tmp_path / "album")
    files = sorted((tmp_path / "album").glob("*.jpg"))
    assert [file.name for file in files] == [photo.name for photo in photos]
    times = [file.stat().st_mtime_ns for file in files]
    make_album(tmp_path / "album")
    assert [file.stat().st_mtime_ns for file in files] == times
    turned = [Image.open(file).getexif().get(0x0112) for file in files]
    assert any(turn in (3, 6, 8) for turn in turned)
    truth = json.loads((tmp_path / "album" / "who-is-where.json").read_text())
    assert truth.keys() == {photo.name for photo in photos}
    pixels = [np.asarray(Image.open(file)) for file in files]
    assert all(a.shape != b.shape or (a != b).any() for a, b in pairwise(pixels))


def test_the_album_takes_the_place_of_an_older_one_and_of_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine" / "IMG_0001.jpg"
    mine.parent.mkdir()
    mine.write_bytes(b"a photo of the user's own")
    with pytest.raises(InvalidInputError, match="has other files in it"):
        make_album(mine.parent)
    assert mine.read_bytes() == b"a photo of the user's own"
    for part in (album()[3:5], album()[5:7]):
        monkeypatch.setattr(album_module, "album", lambda part=part: part)
        made = make_album(tmp_path / "album")
        assert {file.name for file in (tmp_path / "album").glob("*.jpg")} == {photo.name for photo in made}


@pytest.mark.xdist_group("demo")
def test_the_demo_answers_its_questions(demo: Any) -> None:
    assert demo.done.returncode == 0, demo.done.stderr
    report = json.loads(demo.done.stdout)
    assert report["photos"] == 64
    assert report["faces"] > 150
    assert [question["ndcg@10"] > 80 for question in report["questions"]] == [True] * 3
    assert (demo.place / "demo" / "question-1.html").is_file()
    some = sorted((demo.place / "demo" / "album").glob("*.jpg"))[:16]
    assert find_duplicates(some, workers=0) == [], "one person in two photos makes no copies"


def test_a_library_of_another_version_in_a_folder_that_was_named_stays(tmp_path: Path) -> None:
    Library.create(tmp_path / "library").close()
    with closing(sqlite3.connect(tmp_path / "library" / "library.db")) as db:
        db.execute("PRAGMA user_version = 1")
    before = (tmp_path / "library" / "library.db").read_bytes()
    assert "has format 1" in called("demo", "--folder", tmp_path, code=2)[1]
    assert (tmp_path / "library" / "library.db").read_bytes() == before
