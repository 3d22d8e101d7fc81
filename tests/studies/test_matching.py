"""How sure a match is: the experiment on virtual people, and a sample of LFW's test half."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from setnet.evaluate.people import read_split
from setnet.faces.settings import load_calibration
from setnet.library.person_matcher import BackgroundSample, PersonMatcher
from setnet.library.score_calibration import ScoreCalibration
from studies import matching
from studies.score_fitting import LabelledFaces, trials
from tests.support import lfw_sample

needs_lfw: pytest.MarkDecorator = lfw_sample.needs_lfw


def test_it_measures_ways_bands_absence_and_probabilities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("VIRTUAL", 200), ("SIZES", (300, 600)), ("CIRCLES", 6), ("LIBRARIES", 3)):
        monkeypatch.setattr(matching, name, value)
    constants = tmp_path / "constants.toml"
    record = matching.run(matching.Settings(trials=100, repeats=1, faces=1000, constants=constants))
    assert record.row("all together").facts["millions"] > 0
    facts = {row.name: row.facts for row in record.rows}
    three = facts["3 examples"]
    assert three["recall_sure"] > 95
    assert three["false_sure"] < 3
    assert facts["1 example"]["sure"] < three["sure"]
    assert three["maybe"] < three["sure"]
    assert facts["absent, 3 examples"]["empty"] >= 98
    ways = {row.name: row.values for row in record.rows if row.facts["table"] == "ways"}
    wrong = "3, one wrong at 1e-05"
    assert np.mean(ways["weighted mean"][wrong]) > np.mean(ways["plain mean"][wrong]) + 5
    order = record.row("score = probability, photos as they are, test half").values
    assert np.mean(order["2 people"]) > 99
    assert np.mean(order["5 people"]) > 99
    likely = [f for f in facts.values() if f["table"] == "reliability" and f["low"] == 0.99]
    assert all(f["right"] > 99 for f in likely)
    titles = [table.title for table in matching.tables(record)]
    assert len(titles) == 6
    assert "Order" in titles[0]
    assert "Sure and maybe" in titles[2]
    written = tomllib.loads(constants.read_text(encoding="utf-8"))
    assert ScoreCalibration.of(written["calibration"]["match"]).spread > 0


@pytest.fixture
def lfw(lfw_file: Path) -> LabelledFaces:
    """Faces of LFW's test half: forty people with four or five, forty with two or three, 160 with one."""
    with np.load(lfw_file, allow_pickle=False) as file:
        tested = np.isin(file["labels"], [*read_split().test])
        owner = np.unique(file["labels"][tested], return_inverse=True)[1]
        return LabelledFaces(file["descriptors"][tested], owner.astype(np.int64), file["quality"][tested])


@needs_lfw
@pytest.mark.xdist_group("lfw")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("examples", "least"), [(1, 85.0), (3, 95.0)])
def test_on_real_people_sure_matches_are_right_and_most_are_sure(
    lfw: LabelledFaces, examples: int, least: float
) -> None:
    model = ScoreCalibration.of(load_calibration("sface", "match"))
    background = BackgroundSample.of_faces(lfw.descriptors, model)
    recall, false_sure, false_maybe, compared = [], 0, 0, 0
    for trial in trials(lfw, examples, 160, np.random.default_rng(0)):
        here = background.non_match_scores(trial.vector, examples, model)
        known = PersonMatcher.of(model, trial.vector, examples, here, background.faces)
        recall.append(float(np.mean(trial.genuine >= known.sure)))
        false_sure += int((trial.non_matches >= known.sure).sum())
        false_maybe += int((trial.non_matches >= known.maybe).sum())
        compared += len(trial.non_matches)
    assert compared > 50_000
    assert false_sure == 0
    assert false_maybe <= 3e-4 * compared
    assert 100 * np.mean(recall) >= least


@needs_lfw
@pytest.mark.xdist_group("lfw")
@pytest.mark.timeout(900)
def test_real_people_who_are_absent_get_no_sure_match_among_many(lfw: LabelledFaces) -> None:
    model = ScoreCalibration.of(load_calibration("sface", "match"))
    background = BackgroundSample.of_faces(lfw.descriptors, model, faces=100_000)
    found = []
    for trial in trials(lfw, 3, 40, np.random.default_rng(1)):
        here = background.non_match_scores(trial.vector, 3, model)
        known = PersonMatcher.of(model, trial.vector, 3, here, background.faces)
        found.append(bool((trial.non_matches >= known.sure).any()))
    assert not any(found)
