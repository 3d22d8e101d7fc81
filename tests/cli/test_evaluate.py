"""`setnet evaluate`: runs, continues, reports, and refuses bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from setnet.cli.evaluate import app
from setnet.errors import InvalidInputError
from setnet.evaluate.methods import Methods
from setnet.evaluate.people import LabelledPeople, read_people
from setnet.evaluate.record import read_record

pytestmark = pytest.mark.usefixtures("coarse_calibration")

RNG = np.random.default_rng(0)


def written(path: Path, descriptors: object, labels: object) -> Path:
    np.savez(path, descriptors=np.asarray(descriptors, np.float32), labels=np.asarray(labels))
    return path


def test_command_runs_continues_and_reports(tmp_path: Path) -> None:
    result = tmp_path / "stress.json"
    words = [
        "stress",
        "--method",
        "mean",
        "--sets",
        "300",
        "--queries",
        "5",
        "--repeats",
        "2",
        "--json",
        str(result),
    ]
    first = CliRunner().invoke(app, words)
    assert first.exit_code == 0, first.output
    record = read_record(result)
    assert record.settings["difficulty"] == 1.7
    assert record.machine["versions"]["numpy"]
    assert record.rows[0].name == "mean"
    stamp = record.row("mean").facts["seconds"]
    again = CliRunner().invoke(app, [*words, "--page", str(tmp_path / "report.md")])
    assert again.exit_code == 0
    assert "## Stress test" in (tmp_path / "report.md").read_text()
    assert read_record(result).row("mean").facts["seconds"] == stamp
    assert (
        CliRunner().invoke(app, ["compare", str(result)]).output.count("Baseline-3 + W (W after agg.)") == 2
    )


def test_other_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no such descriptor file"):
        read_people(tmp_path / "none.npz")
    np.savez(tmp_path / "x.npz", descriptors=np.ones((3, 4)))
    with pytest.raises(InvalidInputError, match="labels"):
        read_people(tmp_path / "x.npz")
    people = LabelledPeople(
        RNG.standard_normal((60, 16)).astype(np.float32), np.array([f"p{i // 5}" for i in range(60)])
    )
    with pytest.raises(InvalidInputError, match="takes 128-D descriptors, these are 16-D"):
        Methods(people).chosen(["sface-512"])
    with pytest.raises(InvalidInputError, match="mean"):
        Methods(people).chosen(["median"])
    (tmp_path / "not.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(InvalidInputError, match="no result"):
        read_record(tmp_path / "not.json")


def test_a_run_does_not_go_on_with_other_data_of_the_same_name(tmp_path: Path) -> None:
    labels = [f"p{i // 4}" for i in range(60)] + [""] * 10
    words = ["stress", "--method", "mean", "--sets", "100", "--queries", "3", "--repeats", "1", "--json"]
    file, result = tmp_path / "d.npz", tmp_path / "r.json"
    for number, passes in ((0, True), (0, True), (1, False)):
        rows = np.random.default_rng(number).standard_normal((70, 8))
        written(file, rows, labels)
        done = CliRunner().invoke(app, [*words, str(result), "--descriptors", str(file)])
        assert (done.exception is None) is passes, done.output
    assert "with other settings: descriptors 'd.npz" in str(done.exception)


def test_few_faces_are_compared_without_whitening(tmp_path: Path) -> None:
    labels = [f"p{i // 4}" for i in range(40)] + [""] * 10
    file = written(tmp_path / "d.npz", RNG.standard_normal((50, 32)), labels)
    words = ["--descriptors", str(file), "--repeats", "1"]
    for more in (["stress", "--sets", "100", "--method", "mean"], ["identify"], ["orthogonality"]):
        done = CliRunner().invoke(app, [*more, *words], catch_exceptions=False)
        assert done.exit_code == 0
        rows = [line for line in done.stdout.splitlines() if "not applicable" not in line]
        assert "+W" not in "".join(rows)
    with pytest.raises(InvalidInputError, match="whitening 32 dimensions needs more than 32 vectors"):
        CliRunner().invoke(app, ["stress", *words, "--method", "mean +W"], catch_exceptions=False)
