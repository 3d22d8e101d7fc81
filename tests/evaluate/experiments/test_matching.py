"""How sure a match is: the experiment on virtual people, and a sample of LFW's test half."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from setnet.cli.research.evaluate import app
from setnet.evaluate import matching, plots_of, read_record, tables_of
from setnet.evaluate.data.splits import read_split
from setnet.faces import FaceSettings, calibration_of
from setnet.library import Cohort, LabelledFaces, MatchModel, Recogniser, describe_photos, trials

LFW = Path(os.environ.get("SETNET_LFW", Path(__file__).parents[4] / "shared" / "data" / "lfw"))
needs_lfw = pytest.mark.skipif(
    not (LFW / "images").is_dir(), reason=f"LFW is not at {LFW}; set SETNET_LFW to its folder"
)


def test_it_measures_ways_bands_absence_and_probabilities(tmp_path: Path) -> None:
    record = matching(trials=300, repeats=2, faces=20_000, constants=tmp_path / "constants.toml")
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
    likely = [f for f in facts.values() if f["table"] == "reliability" and f["low"] == 0.99]
    assert all(f["right"] > 99 for f in likely)
    titles = [table.title for table in tables_of(record)]
    assert len(titles) == 5
    assert "Sure and maybe" in titles[1]
    written = tomllib.loads((tmp_path / "constants.toml").read_text(encoding="utf-8"))
    assert MatchModel.of(written["calibration"]["match"]).spread > 0
    pytest.importorskip("matplotlib")
    assert [path.name for path in plots_of(record, tmp_path)] == ["matching-strangers.png"]


def test_the_command_keeps_its_rows(tmp_path: Path) -> None:
    words = [
        "matching",
        "--trials",
        "100",
        "--repeats",
        "1",
        "--faces",
        "3000",
        "--json",
        str(tmp_path / "m.json"),
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert read_record(tmp_path / "m.json").row("all together").facts["millions"] > 0


@pytest.fixture(scope="module")
def lfw(tmp_path_factory: pytest.TempPathFactory) -> LabelledFaces:
    """Forty people of LFW's test half with four photos each, and 240 others with one."""
    place = tmp_path_factory.mktemp("lfw")
    test = read_split().test
    folders = [f for f in sorted((LFW / "images").iterdir()) if f.name in test]
    sizes = {folder: len(list(folder.iterdir())) for folder in folders}
    several = [folder for folder in folders if sizes[folder] >= 4][::7][:40]
    singles = [folder for folder in folders if sizes[folder] == 1][::8][:240]
    for folder in [*several, *singles]:
        (place / folder.name).mkdir()
        for photo in sorted(folder.iterdir())[:4]:
            (place / folder.name / photo.name).symlink_to(photo)
    describe_photos([place], place / "faces.npz", FaceSettings())
    with np.load(place / "faces.npz", allow_pickle=False) as file:
        owner = np.unique(file["labels"], return_inverse=True)[1]
        return LabelledFaces(file["descriptors"], owner.astype(np.int64), file["quality"])


@needs_lfw
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("examples", "least"), [(1, 85.0), (3, 95.0)])
def test_on_real_people_sure_matches_are_right_and_most_are_sure(
    lfw: LabelledFaces, examples: int, least: float
) -> None:
    model = MatchModel.of(calibration_of("sface", "match"))
    cohort = Cohort.of_faces(lfw.descriptors, model)
    recall, false_sure, false_maybe, compared = [], 0, 0, 0
    for trial in trials(lfw, examples, 160, np.random.default_rng(0)):
        here = cohort.strangers(trial.vector, examples, model)
        known = Recogniser.of(model, trial.vector, examples, here, cohort.faces)
        recall.append(float(np.mean(trial.genuine >= known.sure)))
        false_sure += int((trial.strangers >= known.sure).sum())
        false_maybe += int((trial.strangers >= known.maybe).sum())
        compared += len(trial.strangers)
    assert compared > 50_000
    assert false_sure == 0
    assert false_maybe <= 3e-4 * compared
    assert 100 * np.mean(recall) >= least


@needs_lfw
@pytest.mark.timeout(600)
def test_real_people_who_are_absent_get_no_sure_match_among_many(lfw: LabelledFaces) -> None:
    model = MatchModel.of(calibration_of("sface", "match"))
    cohort = Cohort.of_faces(lfw.descriptors, model, faces=100_000)
    found = []
    for trial in trials(lfw, 3, 40, np.random.default_rng(1)):
        here = cohort.strangers(trial.vector, 3, model)
        known = Recogniser.of(model, trial.vector, 3, here, cohort.faces)
        found.append(bool((trial.strangers >= known.sure).any()))
    assert not any(found)
