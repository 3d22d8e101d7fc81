from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from setnet.train.loop import own_device
from tests.support.learn_people import photo_folder

ROOT = Path(__file__).parents[2]  # where children import `tests`

SCRIPT = """
import json, os, sys
from pathlib import Path
import numpy as np
import torch
from tests.support.learn_people import pattern
from setnet.train import faces, run_pretrain
from setnet.train.faces import FaceArray
from setnet.train.network import new_backbone
from setnet.train.network import SetNetwork, make_aggregator
from setnet.train.training import pretrain
from setnet.train.loop import process_group
from setnet.train.training import train_sets
from setnet.train.settings import load_settings

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)  # float32 would show rounding, grown step by step, and hide mistakes


class Faces(FaceArray):
    def load(self, picks, streams):
        return super().load(picks, streams).double()


out = Path(sys.argv[1])
settings = load_settings("tiny", [
    "backbone.name=small", "backbone.size=32", "backbone.width=0.25", "backbone.dim=16",
    "augment.short_side=36",
    "aggregator.dim=12", "aggregator.clusters=2", "aggregator.start_sets=100",
    "pretrain.batch=13", "pretrain.steps=3", "pretrain.log_every=1",
    "sets.identities=9", "sets.steps=3", "sets.log_every=1", "sets.freeze_norm=false"])
crops = np.stack([pattern(person, photo) for person in range(10) for photo in range(3)])


def train(out, seed):
    torch.manual_seed(seed)
    backbone = new_backbone(settings)
    source = Faces(crops, np.repeat(np.arange(10), 3), backbone.spec, settings.augment)
    with process_group() as group:
        first = pretrain(backbone, source, settings, out / "p", group)
        network = SetNetwork(backbone, make_aggregator("netvlad", backbone, 12, 2))
        second = train_sets(network, source, settings, out / "s", group)
        if group.rank == 0:
            end = [float(p.double().norm()) for p in network.parameters()]
            buffers = [float(b.double().norm()) for b in network.buffers()]
            result = [group.number, first.losses, second.losses, end, buffers]
            (out / "end.json").write_text(json.dumps(result))


if os.environ["RANK"] == "0":
    number = os.environ.pop("WORLD_SIZE")
    train(out / "one", 0)
    os.environ["WORLD_SIZE"] = number
train(out / "two", int(os.environ["RANK"]))  # other weights in each process, until they are told those of one

torch.set_default_dtype(torch.float32)
if os.environ["RANK"] != "0":
    faces.load_detector = None  # it finds what the first process kept
os.environ["MASTER_PORT"] = sys.argv[2]
run_pretrain(out / "photos", out / "three", settings)
"""


def test_two_processes_give_the_loss_and_the_weights_of_one(tmp_path: Path) -> None:
    photo_folder(tmp_path / "photos", 3, 2)
    with socket.socket() as free, socket.socket() as other:
        free.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        port, next_port = (s.getsockname()[1] for s in (free, other))
    started = []
    for rank in range(2):
        place = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", SCRIPT, str(tmp_path), str(next_port)],
                cwd=ROOT,
                env=os.environ | place,
                stderr=subprocess.PIPE,
            )
        )
    for process in started:
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors.decode()
    alone, together = (json.loads((tmp_path / name / "end.json").read_text()) for name in ("one", "two"))
    assert (alone.pop(0), together.pop(0)) == (1, 2)
    for ours, theirs in zip(alone, together, strict=True):
        np.testing.assert_allclose(np.array(theirs), np.array(ours), rtol=1e-6, atol=1e-9)
    assert sorted(path.name for path in (tmp_path / "three").iterdir()) == [
        "backbone.safetensors", "places.bin", "pretrain",
    ]  # fmt: skip


def test_each_process_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert own_device("cuda") == "cuda"
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert [own_device(name) for name in ("cuda", "cuda:1", "cpu")] == ["cuda:3", "cuda:1", "cpu"]
