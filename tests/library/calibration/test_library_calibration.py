"""A library calibrated to its own people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from setnet.cli.descriptors import app
from setnet.errors import InvalidInputError
from setnet.faces.settings import load_calibration
from setnet.library import Example, Library
from setnet.library.score_calibration import ScoreCalibration
from tests.support.invented_photos import face_of, store

SFACE = ScoreCalibration.of(load_calibration("sface", "match"))


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.create(tmp_path / "library") as made:
        store(made, {f"{i}.jpg": [10 + i % 8, 500 + i] for i in range(60)})
        for person in range(10, 18):
            made.people.add(f"Person {person}", [Example(face_of(person, view)) for view in range(4)])
        yield made


def test_it_is_fitted_stored_used_and_taken_back(library: Library) -> None:
    assert library.matching.model == SFACE
    assert not library.status().calibrated
    report = library.calibrate()
    assert (report.people, report.faces) == (8, 32)
    assert library.matching.model == report.model != SFACE
    assert report.model.genuine > SFACE.genuine, "views of invented people are 0.8 alike"
    assert report.after.recall == report.before.recall == 100.0
    assert report.after.false == 0.0
    with Library.open(library.path) as again:
        assert again.matching.model == report.model
        assert again.status().to_dict()["calibrated"] is True
    library.matching.store_model(None)
    assert library.matching.model == SFACE


def test_groups_of_faces_count_as_people(library: Library) -> None:
    names = [person.name for person in library.people]
    library.people.remove(*names[2:])
    photos = [photo.id for photo in library.photos.all_photos()]
    with pytest.raises(InvalidInputError, match="2 people of this library have two example faces or more: 5"):
        library.calibrate()
    groups = {str(person): [(photo, 0) for photo in photos[person - 10 :: 8][:3]] for person in range(12, 16)}
    assert library.calibrate(groups).people == 6


def test_what_is_stored_for_another_model_or_by_a_later_setnet_does_not_count(library: Library) -> None:
    library.calibrate()
    with library.database.writing() as db:
        (text,) = db.execute("SELECT value FROM meta WHERE key = 'calibration'").fetchone()
        stored = json.loads(text)
        assert stored["descriptor"].startswith("sface+")
        older = stored | {"descriptor": "sface"}  # before the metric
        changes = (stored | {"descriptor": "other"}, older, stored | {"model": {"new": 1}}, [1, 2])
    for change in changes:
        with library.database.writing() as db:
            db.execute("UPDATE meta SET value = ? WHERE key = 'calibration'", (json.dumps(change),))
        assert library.matching.model == SFACE
        assert not library.status().calibrated


def test_the_command_shows_before_and_after(library: Library) -> None:
    place = ["--library", str(library.path)]
    shown = CliRunner().invoke(app, ["calibrate", *place], catch_exceptions=False)
    assert shown.exit_code == 0
    assert "before" in shown.output
    assert "fitted to 32 faces of 8 people" in shown.output
    as_json = json.loads(
        CliRunner().invoke(app, ["calibrate", *place, "--json"], catch_exceptions=False).stdout
    )
    assert as_json["calibrated"] is True
    assert set(as_json["after"]) == {"sure", "maybe", "recall", "false_per_million"}
    assert library.matching.model == ScoreCalibration.of(as_json["model"])
    back = CliRunner().invoke(app, ["calibrate", *place, "--reset"], catch_exceptions=False)
    assert "constants of the descriptor model again" in back.output
    assert library.matching.model == SFACE
    for wrong in (["--head", "mean", *place], ["x.npz", *place], ["x.npz", "--reset"]):
        assert CliRunner().invoke(app, ["calibrate", *wrong]).exit_code == 2


def test_a_backup_has_the_calibration(library: Library, tmp_path: Path) -> None:
    model = library.calibrate().model
    library.backup(tmp_path / "backup")
    with Library.open(tmp_path / "backup") as copy:
        assert copy.matching.model == model


def test_a_person_of_the_query_is_recognised_by_it(library: Library) -> None:
    before = library.find([face_of(10, 0)]).thresholds[0]
    library.calibrate()
    after = library.find([face_of(10, 0)]).thresholds[0]
    assert before != after
    assert np.isfinite(after.sure)
