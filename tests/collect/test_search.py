from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from setnet.collect import CollectRun, run_step, search
from setnet.collect.run import Row, pack
from setnet.collect.search import CaptionArchive, name_pairs
from tests.support.invented_collect import write
from tests.support.invented_photos import face_of

TEXTS = {
    "one.jpg": "Ann Cole and Ben Dole",
    "two.jpg": "Ann Cole, alone at the long annual dinner of the society of friends",
    "three.jpg": "COLE, ANN and Cid Fox",
    "four.jpg": "Annette Coleman",
    "f\udce9ve.jpg": "Zoë's dog",
}


@pytest.fixture
def archive(tmp_path: Path) -> CaptionArchive:
    for folder in ("portraits", "photos"):
        (tmp_path / folder).mkdir()
    run = CollectRun.begin(tmp_path / "run", portraits=tmp_path / "portraits", photos=[tmp_path / "photos"])
    write(
        run, "captions", ({"photo": p, "text": t, "kept": True, "from": ["beside"]} for p, t in TEXTS.items())
    )
    return CaptionArchive.of(run)


def found(archive: CaptionArchive, *people: list[str], **options: object) -> list[str]:
    return [photo for photo, _ in archive.search(people, **options)]  # type: ignore[arg-type]


def test_one_way_to_write_each_name_is_needed_and_other_words_only_rank(archive: CaptionArchive) -> None:
    assert set(found(archive, ["ann cole", "cole, ann"])) == {"one.jpg", "two.jpg", "three.jpg"}
    assert found(archive, ["ann cole"], prefer=["and"])[0] == "one.jpg"
    assert found(archive, ["ann cole"], ["ben dole"]) == ["one.jpg"]


def test_excluded_phrases_and_the_limit_hold(archive: CaptionArchive) -> None:
    assert found(archive, ["ann cole"], prefer=["and"], without=["Ben Dole"]) == ["two.jpg"]
    assert len(found(archive, ["ann cole", "cole, ann"], limit=1)) == 1


def test_accents_possessives_and_odd_file_names_do_not_matter(archive: CaptionArchive) -> None:
    assert found(archive, ["zoe"]) == ["f\udce9ve.jpg"]


@pytest.mark.parametrize("phrase", ["", '""', '"-"', '"an\0n"', "OR", '"', "NOT", "*"])
def test_odd_searches_find_nothing_and_raise_nothing(archive: CaptionArchive, phrase: str) -> None:
    assert found(archive) == []
    assert found(archive, [phrase], without=[phrase]) == []


NAMES = ("Ann Cole", "Ben Dole", "Cid Fox", "Dan Hill", "Eve Low")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CollectRun:
    for folder in ("portraits", "photos"):
        (tmp_path / folder).mkdir()
    run = CollectRun.begin(tmp_path / "run", portraits=tmp_path / "portraits", photos=[tmp_path / "photos"])
    monkeypatch.setattr(search, "SEARCH_LIMIT", 3)
    write(run, "names", ({"entry": n, "name": n, "aliases": [], "kept": True} for n in NAMES))
    one = pack(np.asarray(face_of(1)))
    write(run, "portraits", ({"portrait": n, "name": n, "kept": True, "descriptor": one} for n in NAMES))
    return run


def run_searches(run: CollectRun, texts: Sequence[str]) -> None:
    write(
        run,
        "captions",
        (
            {"photo": f"/photos/{n}.jpg", "text": text, "kept": True, "from": ["beside"]}
            for n, text in enumerate(texts)
        ),
    )
    run_step(run, "pairs")
    run_step(run, "photos")


def test_the_second_round_finds_companions_whom_the_first_crowds_out_and_there_is_no_third(
    run: CollectRun,
) -> None:
    together = ("Ann Cole and Ben Dole", "Ann Cole and Cid Fox", "Ann Cole and Dan Hill")
    run_searches(run, [text for text in together for _ in range(3)] + ["Eve Low and nobody"])
    rows = {row["seed"]: row for row in run.manifest("pairs").rows()}
    assert (rows["Ann Cole"]["first"], rows["Ann Cole"]["second"]) == (["Ben Dole"], ["Cid Fox"])
    assert rows["Eve Low"]["reason"] == "no companions"
    assert name_pairs(run) == [("Ann Cole", name) for name in ("Ben Dole", "Cid Fox", "Dan Hill")]


def photos(run: CollectRun, texts: Sequence[str]) -> dict[str, Row]:
    run_searches(run, texts)
    return {Path(row["photo"]).stem: row for row in run.manifest("photos").rows()}


def test_both_names_of_a_pair_are_needed(run: CollectRun) -> None:
    # FTS5 finds the second name where a phrase ends between its words; the scan for names does not
    rows = photos(run, ["Ann Cole and Ben Dole", "Ann Cole with Ben. Dole is elsewhere"])
    assert rows["0"]["query"] == ["Ann Cole", "Ben Dole"]
    assert (rows["1"]["kept"], rows["1"]["reason"], rows["1"]["detail"]) == (
        False,
        "names not in the text",
        "Ann Cole",
    )


def test_a_photo_of_three_is_searched_for_as_all_of_them(run: CollectRun) -> None:
    rows = photos(run, ["Ann Cole, Ben Dole and Cid Fox"])
    assert rows["0"]["query"] == ["Ann Cole", "Ben Dole", "Cid Fox"]
