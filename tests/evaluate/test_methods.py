"""Networks of `setnet train` that have no run-time form are compared all the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from typer.testing import CliRunner

from setnet.cli.evaluate import app
from setnet.cli.train import app as train_app
from setnet.errors import InvalidInputError, ModelError
from setnet.evaluate.methods import Methods, load_head
from setnet.evaluate.people import LabelledPeople
from setnet.evaluate.record import read_record
from setnet.heads.aggregator import unit

pytestmark = [pytest.mark.usefixtures("coarse_calibration"), pytest.mark.xdist_group("head-files")]
torch.set_num_threads(1)


def people(dim: int = 16) -> LabelledPeople:
    rng = np.random.default_rng(0)
    centres = np.abs(rng.standard_normal((40, dim)))
    rows = np.repeat(centres, 5, axis=0) + 0.3 * rng.standard_normal((200, dim))
    rows = np.concatenate([rows, rng.standard_normal((40, dim))])
    labels = np.array([f"p{i // 5}" if i < 200 else "" for i in range(240)])
    return LabelledPeople(unit(rows.astype(np.float32)), labels)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a descriptor file and a trained mean with p per dimension, whitened."""
    folder = tmp_path_factory.mktemp("gem")
    some = people()
    np.savez(folder / "faces.npz", descriptors=some.descriptors, labels=some.labels)
    run = ["--out", str(folder / "run")]
    changes = ["backbone.dim=16", "aggregator.name=gem-per-dim", "sets.identities=30", "sets.steps=20"]
    changes += ["sets.rate=1.0", "sets.sizes=[2]", "sets.loss=logistic"]
    options = [word for change in changes for word in ("--set", change)]
    for words in (
        ["sets", str(folder / "faces.npz"), *run, *options],
        ["whiten", str(folder / "faces.npz"), *run],
    ):
        done = CliRunner().invoke(train_app, words, catch_exceptions=False)
        assert done.exit_code == 0
    return folder / "faces.npz", folder / "run" / "network.safetensors"


@pytest.mark.parametrize("experiment", [["stress", "--sets", "100"], ["retrieval", "--items", "200"]])
def test_a_trained_mean_is_one_of_the_methods(
    files: tuple[Path, Path], experiment: list[str], tmp_path: Path
) -> None:
    data, trained = files
    network = Path(shutil.copy(trained, tmp_path))
    words = [*experiment, "--descriptors", str(data), "--queries", "4", "--repeats", "1"]
    words += ["--head", str(network), "--method", str(network), "--json", str(tmp_path / "r.json")]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0
    row = read_record(tmp_path / "r.json").row(str(network))
    assert row.facts["bytes_per_item"] == 64
    assert "p from" in row.facts["note"]
    network.write_bytes(network.read_bytes()[:-4] + bytes(4))  # another training
    with pytest.raises(InvalidInputError, match=r"other settings: heads .*network\.safetensors, SHA-256"):
        CliRunner().invoke(app, words, catch_exceptions=False)


def test_it_is_the_mean_of_the_formula_whitened(files: tuple[Path, Path]) -> None:
    head = load_head(str(files[1]))
    network = head.network  # type: ignore[attr-defined]
    p = network.aggregator.exponents.detach().numpy()
    assert len(np.unique(p)) > 2  # one per dimension, some at a limit
    rows = people().descriptors[:3]
    mean = np.mean(np.abs(rows.astype(np.float64)) ** p, axis=0) ** (1 / p)
    white = (mean / np.linalg.norm(mean) - network.after.mean.numpy()) @ network.after.matrix.numpy()
    pooled = head.pool(rows, np.array([3]))[0]
    np.testing.assert_allclose(pooled, white / np.linalg.norm(white), atol=1e-4)


def test_files_that_do_not_fit_are_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="takes 16-D descriptors, these are 24-D"):
        Methods(people(24), heads=(str(files[1]),)).chosen()
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(files[1].read_bytes()[:-40])
    with pytest.raises(ModelError, match="not a readable network"):
        load_head(str(cut))
    other = tmp_path / "other.safetensors"
    save_file({"x": np.ones(2, np.float32)}, str(other))
    with pytest.raises(ModelError, match="no head"):
        load_head(str(other))
