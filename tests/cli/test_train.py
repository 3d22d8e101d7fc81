"""`setnet train` and `setnet calibrate`, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from setnet.cli.descriptors import app as descriptors_app
from setnet.cli.train import app
from setnet.errors import InvalidInputError, ModelError
from setnet.heads import SetNet
from tests.support.learn_people import descriptors, photo_folder

pytestmark = pytest.mark.usefixtures("one_thread", "coarse_calibration")

SMALL = [
    "backbone.size=32",
    "backbone.width=0.25",
    "backbone.dim=16",
    "augment.short_side=36",
    "aggregator.dim=12",
    "aggregator.clusters=2",
    "aggregator.start_sets=200",
    "pretrain.batch=12",
    "pretrain.steps=2",
    "sets.identities=8",
    "sets.steps=2",
]


def run(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def changes(names: list[str]) -> list[str]:
    return [word for name in names for word in ("--set", name)]


@pytest.mark.xdist_group("onnx-export")
def test_photos_to_an_exported_network(tmp_path: Path) -> None:
    photos, out = photo_folder(tmp_path / "photos", 10, 3), tmp_path / "run"
    common = ["--out", out, "--preset", "tiny", *changes(SMALL), "--threads", "1"]
    assert "2 steps" in run("pretrain", photos, *common)
    assert "2 steps, nothing was left to do" in run("pretrain", photos, *common)
    assert "2 steps" in run("sets", photos, *common)
    assert "whitened after aggregation" in run("whiten", photos, "--out", out)
    written = run("export", "--out", out, "--name", "small").split()
    assert [Path(p).name for p in written] == ["small.safetensors", "small-faces.onnx", "small-faces.toml"]
    net = SetNet.load(Path(written[0]))
    assert net.aggregate(np.ones((3, 16), np.float32), [1, 2]).shape == (2, 12)
    assert net.head.about["settings"]["preset"] == "tiny"


@pytest.mark.parametrize("virtual", [False, True])
def test_descriptors_to_a_one_bit_head(tmp_path: Path, virtual: bool) -> None:
    rows, labels = descriptors(60, 4)
    data, out = tmp_path / "faces.npz", tmp_path / "run"
    np.savez(data, descriptors=rows, labels=labels)
    small = [
        "backbone.dim=32",
        "aggregator.dim=64",
        "aggregator.clusters=4",
        "sets.identities=30",
        "sets.steps=3",
    ]
    run("sets", data, "--out", out, *changes(small), *(["--virtual"] if virtual else []))
    run("whiten", data, "--out", out)
    head = run("export", "--out", out, "--name", "thin", "--descriptor", "made-up", "--bits", "1").strip()
    net = SetNet.load(Path(head))
    assert (net.dim, net.bytes_per_item, net.head.descriptor) == (64, 8, "made-up")


def test_heads_are_refitted_on_half_of_the_people_and_judged_on_the_other(tmp_path: Path) -> None:
    rows, labels = descriptors(80, 5, dim=48, spread=0.6)
    data, poor = tmp_path / "faces.npz", tmp_path / "poor.npz"
    np.savez(data, descriptors=rows, labels=labels, model="made-up")
    np.savez(poor, descriptors=rows + 0.1 * np.roll(rows, 1, 0), labels=labels)
    words = ["heads", data, "--out", tmp_path, "--name", "own", "--sets", "200", "--page", tmp_path / "p.md"]
    said = run(*words, "--degraded", poor)
    net = SetNet.load(tmp_path / "own-128.safetensors")
    assert (net.element_dim, net.bytes_per_item, net.head.descriptor) == (48, 128, "made-up")
    assert net.head.about["trained_on"] == "40 people, 400 faces", "the other half is for the test"
    assert not (tmp_path / "own-512.safetensors").exists(), "48 dimensions have 1,176 products"
    gap = said.split("**Share of the gap closed, %**")[1]
    shares = [float(cell) for cell in gap.split("own-128.safetensors |")[1].split("\n")[0].split("|")[1:5]]
    assert np.mean(shares) > 10
    assert gap.split("\n")[4].startswith("| mean | 192 | 0 |")
    assert gap.split("Of the gap")[0] in (tmp_path / "p.md").read_text()
    np.savez(data, descriptors=rows[:, :40], labels=labels)
    with pytest.raises(InvalidInputError, match="45 dimensions or more"):
        run(*words)


def test_a_stage_without_the_one_before_says_which(tmp_path: Path) -> None:
    photos = photo_folder(tmp_path / "photos", 4, 2)
    with pytest.raises(ModelError, match="setnet train pretrain"):
        run("sets", photos, "--out", tmp_path / "run", "--preset", "tiny")
    with pytest.raises(ModelError, match="setnet train sets"):
        run("export", "--out", tmp_path / "run")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--device", "tpu"], "valid are cpu, cuda"),
        (["--set", "backbone.name=resnet51"], "'resnet50'"),
        (["--set", "aggregator.name=gen"], "'gem-per-dim'"),
    ],
)
def test_names_that_do_not_exist_are_answered_with_those_that_do(
    tmp_path: Path, words: list[str], message: str
) -> None:
    rows, labels = descriptors(20, 2)
    np.savez(tmp_path / "faces.npz", descriptors=rows, labels=labels)
    with pytest.raises(InvalidInputError, match=message):
        run("sets", tmp_path / "faces.npz", "--out", tmp_path / "run", "--set", "backbone.dim=32", *words)


def test_descriptors_of_another_width_are_refused(tmp_path: Path) -> None:
    rows, labels = descriptors(20, 2)
    np.savez(tmp_path / "faces.npz", descriptors=rows, labels=labels)
    with pytest.raises(InvalidInputError, match=r"32 dimensions, the settings say backbone.dim=128"):
        run("sets", tmp_path / "faces.npz", "--out", tmp_path / "run")


def test_calibrate_prints_and_rewrites_a_head(tmp_path: Path) -> None:
    rows, labels = descriptors(40, 4)
    data = tmp_path / "faces.npz"
    np.savez(data, descriptors=rows, labels=labels)
    said = CliRunner().invoke(descriptors_app, ["calibrate", str(data), "--json"], catch_exceptions=False)
    facts = json.loads(said.stdout)
    assert 0 < facts["threshold"] < 1
    assert facts["accuracy"] > 0.95
    small = [
        "backbone.dim=32",
        "aggregator.dim=16",
        "aggregator.clusters=2",
        "sets.identities=20",
        "sets.steps=1",
    ]
    run("sets", data, "--out", tmp_path / "run", *changes(small))
    head = run("export", "--out", tmp_path / "run").strip()
    new = tmp_path / "new.safetensors"
    done = CliRunner().invoke(
        descriptors_app, ["calibrate", str(data), "--head", head, "--out", str(new)], catch_exceptions=False
    )
    assert done.exit_code == 0
    old, again = SetNet.load(Path(head)), SetNet.load(new)
    assert again.logistic != old.logistic
    np.testing.assert_array_equal(again.describe(rows), old.describe(rows))
    with pytest.raises(InvalidInputError, match="--head"):
        CliRunner().invoke(
            descriptors_app, ["calibrate", str(data), "--out", str(new)], catch_exceptions=False
        )
