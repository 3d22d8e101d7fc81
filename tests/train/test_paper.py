"""The paper's networks on any folder of identities, in several processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from setnet.evaluate import read_record
from setnet.evaluate.claim import over_seeds
from setnet.evaluate.people import read_split
from setnet.train import FaceArray, load_settings, new_backbone, new_network, train_sets
from setnet.train.loop import ProcessGroup
from setnet.train.training import initialise_network, load_set_batch
from tests.support.command_line import called
from tests.support.learn_people import pattern, photo_folder
from tests.support.lfw_sample import LFW

TOY = [
    "backbone.name=small", "backbone.size=32", "backbone.width=0.25", "backbone.dim=16",
    "augment.short_side=36", "aggregator.dim=12", "aggregator.clusters=2", "aggregator.start_sets=100",
    "pretrain.batch=13", "pretrain.steps=2", "sets.identities=9", "sets.steps=1",
]  # fmt: skip


def photos_of_people(root: Path) -> Path:
    """Make folders of people of both of LFW's halves; of made-up photos under their names without LFW."""
    split = read_split()
    train, test = (sorted(half) for half in (split.train, split.test))
    if not (LFW / "images").is_dir():
        photo_folder(root, 30, 4)
        for folder, name in zip(sorted(root.iterdir()), [*train[:20], *test[:10]], strict=True):
            folder.rename(root / name)
        return root
    for half, people in ((train, 20), (test, 10)):
        several = [name for name in half if len(os.listdir(LFW / "images" / name)) >= 4]
        for name in several[:people]:
            (root / name).mkdir(parents=True)
            for photo in sorted((LFW / "images" / name).iterdir())[:4]:
                (root / name / photo.name).symlink_to(photo)
    return root


def command(data: Path, out: Path) -> list[str]:
    """Return the words that train every network."""
    changes = [part for change in TOY for part in ("--set", change)]
    words = ["train", "paper", str(data), "--out", str(out), "--preset", "tiny", "--sets", "100"]
    return [*words, "--workers", "0", "--threads", "1", *changes]


def train_paper(data: Path, out: Path, *, processes: int) -> list[str]:
    """Run the command in several processes; return what each printed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    group = {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "setnet", *command(data, out)],
            env=os.environ | group | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    printed = [process.communicate(timeout=300) for process in started]
    assert [process.returncode for process in started] == [0] * processes, printed
    return [out for out, _ in printed]


def test_two_processes_train_and_measure_every_network_of_the_tables(tmp_path: Path) -> None:
    data, out = photos_of_people(tmp_path / "photos"), tmp_path / "run"
    first, second = train_paper(data, out, processes=2)
    assert "SetNet-3 + W" in first
    assert not second
    record = read_record(out / "claim.json")
    rows = [row.name for row in over_seeds(record)]
    for name in ("Baseline", "Baseline-2", "Baseline-3", "SetNet", "SetNet-2", "SetNet-3"):
        assert {name, f"{name} + W"} <= set(rows)
    assert {"Baseline-2 (agg. before FC) + W", "Baseline-GM-2 + W", "Descriptor-per-element"} <= set(rows)
    assert record.extra["identities"] == [15, 5, 10]
    assert {"AggNet-3", "Element codes, 1 bit, of SetNet-3"} <= set(rows)
    weights = (out / "seed-0" / "logistic" / "rate-0.01" / "setnet-3" / "network.safetensors").stat()
    assert called(*command(data, out))[0] == first  # nothing is trained again
    assert (out / "seed-0" / "logistic" / "rate-0.01" / "setnet-3" / "network.safetensors").stat() == weights
    assert read_record(out / "claim.json").rows == record.rows


def test_the_preset_trains_by_the_paper_s_loss_set_size_and_schedule() -> None:
    changes = [change for change in TOY if not change.startswith(("pretrain.", "sets."))]
    settings = load_settings("paper", [*changes, "sets.steps=7"])
    assert (settings.augment.rotation, settings.pretrain.rate, settings.pretrain.batch) == (10.0, 0.001, 84)
    torch.manual_seed(0)
    network = new_network(new_backbone(settings), settings)
    spec = network.backbone.spec
    assert spec is not None
    crops = np.stack([pattern(person, photo, 36) for person in range(42) for photo in range(3)])
    source = FaceArray(crops, np.repeat(np.arange(42), 3), spec, settings.augment)
    ours = deepcopy(network)
    with TemporaryDirectory() as folder:
        train_sets(ours, source, settings, Path(folder))

    initialise_network(network, source, settings)
    network.train()
    decayed = [p for p in network.parameters() if p.ndim > 1]
    others = [p for p in network.parameters() if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.001}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.SGD(groups, lr=0.0001, momentum=0.9)
    for step in range(7):
        faces, labels, _ = load_set_batch(source, settings.sets, 0, step, ProcessGroup())
        for group in optimiser.param_groups:
            group["lr"] = 0.0001 if step < 5 else 0.00001 if step < 6 else 0.000001  # drops at 4.2 and 5.95
        elements = network.elements(faces)
        vectors = network.aggregate(elements, torch.tensor([3] * 14 + [1] * 42))
        similarity = vectors[14:] @ vectors[:14].T  # 42 queries, 14 sets of three
        y = (labels[42:, None, None] == labels[:42].view(1, 14, 3)).any(2).float()
        chance = torch.sigmoid(network.w * similarity + network.b)
        positive = -(y * chance.log()).sum(0) / y.sum(0)
        negative = -((1 - y) * (1 - chance).log()).sum(0) / (1 - y).sum(0)
        optimiser.zero_grad()
        (positive + negative).mean().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    for (name, mine), theirs in zip(ours.named_parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6, msg=name)
