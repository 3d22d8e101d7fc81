from __future__ import annotations

from pathlib import Path

import pytest

from setnet.collect import CaptionArchive, CollectRun
from setnet.collect.sources.photo_source import parsed_words

TEXTS = {
    "one.jpg": "Ann Cole and Ben Dole",
    "two.jpg": "Ann Cole, alone at the long annual dinner of the society of friends",
    "three.jpg": "COLE, ANN and Cid Fox",
    "four.jpg": "Annette Coleman",
    "f\udce9ve.jpg": "Zoë's dog",
}


@pytest.fixture
def archive(tmp_path: Path) -> CaptionArchive:
    from invented_collect import write

    for folder in ("portraits", "photos"):
        (tmp_path / folder).mkdir()
    run = CollectRun.begin(tmp_path / "run", portraits=tmp_path / "portraits", photos=[tmp_path / "photos"])
    write(
        run, "captions", ({"photo": p, "text": t, "kept": True, "from": ["beside"]} for p, t in TEXTS.items())
    )
    return CaptionArchive.of(run)


def found(archive: CaptionArchive, words: str, **options: object) -> list[str]:
    return [photo.photo for photo in archive.search(words, **options)]  # type: ignore[arg-type]


def test_one_of_the_joined_phrases_is_needed_and_other_words_only_rank(archive: CaptionArchive) -> None:
    assert set(found(archive, '"ann cole" OR "cole, ann"')) == {"one.jpg", "two.jpg", "three.jpg"}
    assert found(archive, '"ann cole" and')[0] == "one.jpg"
    assert found(archive, '"ann cole" "ben dole"') == ["one.jpg"]


def test_excluded_phrases_and_the_limit_hold(archive: CaptionArchive) -> None:
    assert found(archive, '"ann cole" and', without=["Ben Dole"]) == ["two.jpg"]
    assert len(found(archive, '"ann cole" OR "cole, ann"', limit=1)) == 1


def test_accents_possessives_and_odd_file_names_do_not_matter(archive: CaptionArchive) -> None:
    assert found(archive, '"zoe"') == ["f\udce9ve.jpg"]


@pytest.mark.parametrize("words", ["", "and", '""', '"-"', '"an\0n"', '"a" OR', "OR", '"'])
def test_odd_searches_find_nothing_and_raise_nothing(archive: CaptionArchive, words: str) -> None:
    assert found(archive, words) == []


def test_words_are_parsed_as_an_engine_does() -> None:
    assert parsed_words('"a b" OR "c" "d" and') == ([["a b", "c"], ["d"]], ["and"])
