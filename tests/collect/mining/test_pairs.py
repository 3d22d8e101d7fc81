from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from invented_collect import write
from invented_photos import face_of
from setnet.collect import CaptionedPhoto, CollectRun, pairs_of, run_step
from setnet.collect.run.manifest import Row
from setnet.collect.run.packed import packed
from setnet.collect.sources.photo_source import parsed_words

NAMES = ("Ann Cole", "Ben Dole", "Cid Fox", "Dan Hill")


class Engine:
    """A source that ranks the photos of one companion first, as search engines do."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.searches: list[tuple[str, tuple[str, ...]]] = []

    def search(
        self, words: str, *, without: Sequence[str] = (), limit: int = 100
    ) -> Iterable[CaptionedPhoto]:
        self.searches.append((words, tuple(without)))
        needed, _ = parsed_words(words)
        found = [
            CaptionedPhoto(f"/photos/{number}.jpg", text)
            for number, text in enumerate(self.texts)
            if all(any(phrase in text.casefold() for phrase in group) for group in needed)
            and not any(name in text for name in without)
        ]
        return found[:limit]


@pytest.fixture
def run(tmp_path: Path) -> CollectRun:
    for folder in ("portraits", "photos"):
        (tmp_path / folder).mkdir()
    run = CollectRun.begin(tmp_path / "run", portraits=tmp_path / "portraits", photos=[tmp_path / "photos"])
    run = CollectRun.begin(run.path, answers_per_search=3)
    write(run, "names", ({"entry": n, "name": n, "aliases": [], "kept": True} for n in NAMES))
    one = packed(np.asarray(face_of(1)))
    write(run, "portraits", ({"portrait": n, "name": n, "kept": True, "descriptor": one} for n in NAMES))
    write(run, "captions", ())
    return run


def test_the_second_round_finds_companions_whom_the_first_crowds_out(run: CollectRun) -> None:
    engine = Engine([*["Ann Cole and Ben Dole"] * 5, "Ann Cole and Cid Fox"])
    run_step(run, "pairs", source=engine)
    rows = {row["seed"]: row for row in run.manifest("pairs").rows()}
    assert (rows["Ann Cole"]["first"], rows["Ann Cole"]["second"]) == (["Ben Dole"], ["Cid Fox"])
    assert rows["Dan Hill"]["reason"] == "no companions"
    assert pairs_of(run) == [("Ann Cole", "Ben Dole"), ("Ann Cole", "Cid Fox")]
    of_ann = [(words, without) for words, without in engine.searches if words.startswith('"ann cole"')]
    assert [without for _, without in of_ann] == [(), ("Ben Dole",)]  # and no third round
    assert all(words.endswith(" and") for words, _ in of_ann)


def photos(run: CollectRun, texts: Sequence[str]) -> dict[str, Row]:
    engine = Engine(texts)
    run_step(run, "pairs", source=engine)
    run_step(run, "photos", source=engine)
    return {Path(row["photo"]).stem: row for row in run.manifest("photos").rows()}


def test_both_names_of_a_pair_are_needed_by_default(run: CollectRun) -> None:
    texts = ["Ann Cole and Ben Dole", "Ann Cole. And the ben doleful"]
    rows = photos(run, texts)
    assert rows["0"]["query"] == ["Ann Cole", "Ben Dole"]
    assert (rows["1"]["kept"], rows["1"]["reason"], rows["1"]["detail"]) == (
        False,
        "names not in the text",
        "Ann Cole",
    )


def test_one_name_is_enough_when_that_is_the_setting(run: CollectRun) -> None:
    run = CollectRun.begin(run.path, names_needed=1)
    rows = photos(run, ["Ann Cole and Ben Dole", "Ann Cole. And the ben doleful"])
    assert rows["1"]["kept"]
    assert rows["1"]["query"] == ["Ann Cole"]


def test_a_photo_of_three_is_searched_for_as_all_of_them(run: CollectRun) -> None:
    rows = photos(run, ["Ann Cole, Ben Dole and Cid Fox"])
    assert rows["0"]["query"] == ["Ann Cole", "Ben Dole", "Cid Fox"]
