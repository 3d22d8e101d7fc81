from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from setnet.errors import InvalidInputError, ModelError, PhotoError, TrainingError
from setnet.heads import codec
from setnet.train import loop
from setnet.train.aggregators import (
    GeneralisedMean,
    HashedNetVLAD,
    NetVLAD,
    NetVLADAggregator,
    initialise_aggregator,
    initialise_netvlad,
    kmeans,
    random_sets,
    unit,
)
from setnet.train.backbones import Descriptors
from setnet.train.faces import FaceArray, FaceFolder
from setnet.train.loop import ProcessGroup, TrainReport, best_checkpoint, latest_checkpoint
from setnet.train.network import (
    NetworkAggregator,
    SetNetwork,
    load_backbone,
    load_network,
    make_aggregator,
    make_head,
    new_backbone,
    save_backbone,
    save_network,
)
from setnet.train.settings import Schedule, TrainingSettings, load_settings
from setnet.train.sources import DescriptorSource, Draw
from setnet.train.stages import run_sets, run_whiten, whiten
from setnet.train.training import (
    batch_of_step,
    calibrate_network,
    initialise_network,
    load_set_batch,
    pretrain,
    set_step_loss,
    train_sets,
)
from tests.support.learn_people import descriptors, pattern, photo_folder

HEAD = [
    "backbone.dim=32",
    "aggregator.dim=24",
    "aggregator.clusters=4",
    "aggregator.start_sets=400",
    "sets.identities=40",
    "sets.steps=30",
    "sets.save_every=10",
    "sets.log_every=1",
    "sets.sizes=[2, 3]",
]
FACES = [
    "backbone.size=32",
    "backbone.width=0.25",
    "backbone.dim=16",
    "augment.short_side=36",
    "aggregator.dim=12",
    "aggregator.clusters=2",
    "aggregator.start_sets=100",
    "pretrain.batch=12",
    "pretrain.steps=6",
    "pretrain.save_every=3",
    "pretrain.log_every=1",
    "sets.identities=8",
    "sets.steps=6",
    "sets.save_every=3",
    "sets.log_every=1",
]


def train_head(
    folder: Path, settings: TrainingSettings, stop_at: int | None = None
) -> tuple[SetNetwork, TrainReport]:
    torch.manual_seed(settings.seed)
    backbone = Descriptors(32)
    network = SetNetwork(backbone, make_aggregator("netvlad", backbone, 24, 4))
    report = train_sets(network, DescriptorSource(*descriptors(80, 4)), settings, folder, stop_at=stop_at)
    return network, report


def test_aggnet_learns_the_layer_before_its_signs(tmp_path: Path) -> None:
    torch.manual_seed(0)
    backbone = Descriptors(32)
    network = SetNetwork(backbone, make_aggregator("hashed", backbone, clusters=2))
    people = DescriptorSource(*descriptors(80, 4))
    settings = load_settings("default", [*HEAD, "aggregator.start_sets=200", "sets.steps=12"])
    assert isinstance(network.aggregator, HashedNetVLAD)
    initialise_network(network, people, settings)
    before = network.aggregator.fc.weight.detach().clone()
    train_sets(network, people, settings, tmp_path)
    assert (network.aggregator.fc.weight - before).abs().max() > 0.001, "no gradient passes a sign"
    kept = NetworkAggregator(network, "AggNet")
    faces, counts = people.descriptors[:6], np.array([2, 4])
    assert kept.encode(faces, counts).shape == (2, 8), "a sign for each of two clusters of 32 dimensions"
    signs = codec.decode(kept.encode(faces, counts), 64, 1)
    np.testing.assert_array_equal(signs > 0, kept.pool(faces, counts) > 0)
    with pytest.raises(ModelError, match="HashedNetVLAD has no run-time form"):
        make_head(network, "aggnet", "made-up", {})
    with pytest.raises(InvalidInputError, match="signs"):
        whiten(network, torch.from_numpy(faces), people.labels[:6], (2,))


def test_a_finished_run_repeated_keeps_the_whitening_added_since(tmp_path: Path) -> None:
    rows, labels = descriptors(80, 4)
    np.savez(tmp_path / "people.npz", descriptors=rows, labels=labels)
    settings = load_settings("default", HEAD)
    run_sets(tmp_path / "people.npz", tmp_path, settings)
    run_whiten(tmp_path / "people.npz", tmp_path)
    assert run_sets(tmp_path / "people.npz", tmp_path, settings).losses == ()
    assert load_network(tmp_path / "network.safetensors").network.after is not None


def faces(settings: TrainingSettings) -> FaceArray:
    backbone = new_backbone(settings)
    assert backbone.spec is not None
    crops = np.stack([pattern(person, photo) for person in range(10) for photo in range(3)])
    return FaceArray(crops, np.repeat(np.arange(10), 3), backbone.spec, settings.augment)


def same_weights(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    left, right = one.state_dict(), other.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[k], right[k]) for k in left)


def test_set_training_lowers_the_loss_and_repeats_exactly(tmp_path: Path) -> None:
    settings = load_settings("default", HEAD)
    network, _ = train_head(tmp_path / "a", settings)
    start, _ = train_head(tmp_path / "start", settings, stop_at=0)
    source = DescriptorSource(*descriptors(80, 4))

    def loss(network: SetNetwork) -> float:
        with torch.no_grad():
            batches = (load_set_batch(source, settings.sets, 9, step, ProcessGroup()) for step in range(20))
            steps = [set_step_loss(network, batch, settings.sets) for batch in batches]
        return float(torch.stack(steps).mean())

    assert loss(network) < loss(start) - 0.01
    again, _ = train_head(tmp_path / "b", settings)
    assert same_weights(network, again)
    other, _ = train_head(tmp_path / "c", settings.override(["seed=1"]))
    assert not same_weights(network, other)


@pytest.mark.parametrize("stop", [10, 17])
def test_an_interrupted_run_ends_like_an_uninterrupted_one(tmp_path: Path, stop: int) -> None:
    settings = load_settings("default", HEAD)
    whole, _ = train_head(tmp_path / "whole", settings)
    train_head(tmp_path / "cut", settings, stop_at=stop)
    resumed, report = train_head(tmp_path / "cut", settings)
    assert report.resumed_at == stop
    assert same_weights(whole, resumed)


def test_training_from_photos_resumes_exactly_through_both_phases(tmp_path: Path) -> None:
    settings = load_settings("tiny", FACES)
    ends = []
    for name, stops in (("whole", [None]), ("cut", [2, None])):
        for stop in stops:
            torch.manual_seed(0)
            backbone = new_backbone(settings)
            pretrain(backbone, faces(settings), settings, tmp_path / name / "p", stop_at=stop)
        for stop in stops:
            torch.manual_seed(0)
            save_backbone(tmp_path / name / "backbone.safetensors", backbone, settings, {})
            fresh = load_backbone(tmp_path / name / "backbone.safetensors", settings)
            network = SetNetwork(fresh, make_aggregator("netvlad", fresh, 12, 2))
            train_sets(network, faces(settings), settings, tmp_path / name / "s", stop_at=stop)
        ends.append(network)
    assert same_weights(*ends)


@pytest.mark.parametrize("phase", ["pretrain", "sets"])
def test_workers_and_mixed_precision(phase: str, tmp_path: Path) -> None:
    settings = load_settings("tiny", [*FACES, "pretrain.validate=4", "sets.validate=4"])
    ends = {}
    for name, workers, precision in (
        ("alone", 0, "float32"),
        ("workers", 2, "float32"),
        ("half", 0, "bfloat16"),
    ):
        own = settings.override([f"{phase}.precision={precision}"])
        torch.manual_seed(0)
        backbone = new_backbone(own)
        source = faces(own)
        if phase == "pretrain":
            module: torch.nn.Module = backbone
            report = pretrain(backbone, source, own, tmp_path / name, workers=workers)
        else:
            module = SetNetwork(backbone, make_aggregator("netvlad", backbone, 12, 2))
            report = train_sets(module, source, own, tmp_path / name, workers=workers)
        ends[name] = module, report.losses
        assert {p.dtype for p in module.parameters()} == {torch.float32}
    assert same_weights(ends["alone"][0], ends["workers"][0])
    assert ends["alone"][1] == ends["workers"][1]
    assert ends["alone"][1] != ends["half"][1]
    if phase == "pretrain":  # the (w, b) of an untrained network makes much of little
        assert ends["half"][1][0][1] == pytest.approx(ends["alone"][1][0][1], rel=0.1)


def test_the_best_checkpoint_on_people_held_out_is_the_result(tmp_path: Path) -> None:
    settings = load_settings("default", [*HEAD, "sets.validate=30", "sets.rate=5.0", "sets.clip=0.0"])
    rows, labels = descriptors(80, 6, spread=1.2)
    np.savez(tmp_path / "people.npz", descriptors=rows, labels=labels)
    run_sets(tmp_path / "people.npz", tmp_path / "run", settings)
    best = best_checkpoint(tmp_path / "run" / "sets" / "checkpoints")
    assert best is not None
    states = [load_state(path) for path in (tmp_path / "run" / "sets" / "checkpoints").iterdir()]
    scores = {state["step"]: state["score"] for state in states if state["score"] is not None}
    assert max(scores.values()) == best.state["score"]
    assert 0 < best.state["score"] <= 100
    kept = load_network(tmp_path / "run" / "network.safetensors").network
    tensors = load_file(best.folder / "tensors.safetensors")
    assert all(torch.equal(v, tensors[f"model.{k}"]) for k, v in kept.state_dict().items())
    source = DescriptorSource(rows, labels)
    rest, held = source.hold_out(30)
    assert (rest.people, held.people) == (50, 30)
    assert not set(rest.labels[rest.faces]) & set(held.labels[held.faces])


def load_state(folder: Path) -> dict[str, float | None]:
    state: dict[str, float | None] = json.loads((folder / "state.json").read_text())
    return state


def test_a_broken_photo_is_named_by_workers_too(tmp_path: Path) -> None:
    settings = load_settings("tiny", FACES)
    backbone = new_backbone(settings)
    assert backbone.spec is not None
    source = FaceFolder(photo_folder(tmp_path / "photos", 6, 2), backbone.spec, settings.augment)
    source.paths[3].write_bytes(b"no photo")
    with pytest.raises(PhotoError, match=str(source.paths[3])):
        pretrain(backbone, source, settings, tmp_path / "run", workers=1)


def test_frozen_descriptors_train_the_head_only(tmp_path: Path) -> None:
    settings = load_settings("tiny", [*FACES, "sets.freeze=true"])
    torch.manual_seed(0)
    backbone = new_backbone(settings)
    before = {k: v.clone() for k, v in backbone.state_dict().items()}
    network = SetNetwork(backbone, make_aggregator("netvlad", backbone, 12, 2))
    train_sets(network, faces(settings), settings, tmp_path)
    assert all(torch.equal(before[k], v) for k, v in backbone.state_dict().items())


class Broken(DescriptorSource):
    """Gives NaN from a certain load on."""

    loads = 0

    def load(self, picks: np.ndarray, streams: object) -> torch.Tensor:
        self.loads += streams is not None
        rows = super().load(picks, None)
        return rows * torch.nan if self.loads > 15 else rows


def test_a_nan_loss_stops_with_the_last_good_checkpoint(tmp_path: Path) -> None:
    settings = load_settings("default", HEAD)
    backbone = Descriptors(32)
    network = SetNetwork(backbone, make_aggregator("netvlad", backbone, 24, 4))
    with pytest.raises(
        TrainingError, match=r"not finite at step 16; the last good checkpoint is .*step-00000010"
    ):
        train_sets(network, Broken(*descriptors(80, 4)), settings, tmp_path)
    kept = latest_checkpoint(tmp_path / "checkpoints")
    assert kept is not None
    assert kept.step == 10
    resumed, report = train_head(tmp_path, settings)
    assert report.resumed_at == 10
    assert all(torch.isfinite(p).all() for p in resumed.parameters())


def test_other_settings_do_not_continue_a_run(tmp_path: Path) -> None:
    settings = load_settings("default", HEAD)
    train_head(tmp_path, settings, stop_at=5)
    with pytest.raises(TrainingError, match="other settings"):
        train_head(tmp_path, settings.override(["sets.rate=0.5"]))


def test_other_people_do_not_continue_a_run(tmp_path: Path) -> None:
    settings = load_settings("default", HEAD)
    train_head(tmp_path, settings, stop_at=5)
    backbone = Descriptors(32)
    network = SetNetwork(backbone, make_aggregator("netvlad", backbone, 24, 4))
    with pytest.raises(TrainingError, match="other settings or data"):
        train_sets(network, DescriptorSource(*descriptors(70, 4)), settings, tmp_path)


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    settings = load_settings("default", HEAD)
    train_head(tmp_path, settings, stop_at=5)
    file = next((tmp_path / "checkpoints").glob("step-00000005/*.safetensors"))
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(TrainingError, match="damaged checkpoint"):
        train_head(tmp_path, settings)


def test_every_step_is_logged_once_also_when_a_run_goes_on(tmp_path: Path) -> None:
    settings = load_settings("default", [*HEAD, "sets.steps=20"])
    rate = loop.learning_rate

    def stopped(schedule: Schedule, step: int) -> float:
        if step == 14:  # of which the last ten were stored
            raise KeyboardInterrupt
        return rate(schedule, step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "learning_rate", stopped)
        with pytest.raises(KeyboardInterrupt):
            train_head(tmp_path, settings)
    train_head(tmp_path, settings)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, 21))
    assert all(line["loss"] > 0 for line in lines)


def test_epochs_visit_every_face_once() -> None:
    faces_ = np.arange(10)
    seen = np.concatenate([batch_of_step(faces_, 0, step, 4) for step in range(5)])
    assert sorted(seen[:10]) == sorted(seen[10:]) == list(range(10))
    assert list(seen[:10]) != list(seen[10:])


def test_an_epoch_is_shuffled_once_for_all_of_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[object] = []
    make = np.random.default_rng

    def counted(seed: object) -> np.random.Generator:
        seeds.append(seed)
        return make(seed)  # type: ignore[arg-type]

    monkeypatch.setattr(np.random, "default_rng", counted)
    for step in range(25):
        batch_of_step(np.arange(103), 7, step, 10)
    assert seeds == [(7, 0), (7, 1), (7, 2)]


def test_the_default_head_starts_softly() -> None:
    assert load_settings("default").aggregator.alpha == 3.0


def test_networks_survive_being_stored(tmp_path: Path) -> None:
    settings = load_settings("default", HEAD)
    network, _ = train_head(tmp_path / "run", settings)
    save_network(tmp_path / "n.safetensors", network, settings, {"made": "here"})
    stored = load_network(tmp_path / "n.safetensors")
    assert same_weights(stored.network, network)
    assert (stored.settings, stored.about) == (settings, {"made": "here"})


def test_few_faces_calibrate_a_network_too() -> None:
    rows, labels = descriptors(20, 3)
    source = DescriptorSource(rows, labels)
    backbone = Descriptors(32)
    network = SetNetwork(backbone, make_aggregator("average", backbone), w=1.0, b=7.0)
    calibrate_network(network, source.load(source.faces, None), source.labels, (2, 3, 4, 5, 6), seed=0)
    assert network.w.item() > 2
    assert -0.9 * network.w.item() < network.b.item() < 0


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Stopped(DescriptorSource):
        def draw(self, rng: np.random.Generator, people: int, per_person: int) -> Draw:
            raise KeyboardInterrupt

    settings = load_settings("default", HEAD)
    backbone = Descriptors(32)
    network = SetNetwork(backbone, make_aggregator("netvlad", backbone, 24, 4))
    with caplog.at_level("INFO"), pytest.raises(KeyboardInterrupt):
        train_sets(network, Stopped(*descriptors(80, 4)), settings, tmp_path)
    assert "the same command goes on" in caplog.text


def learned_p(name: str, folder: Path) -> torch.Tensor:
    settings = load_settings("default", [*HEAD, "sets.rate=0.02"])
    backbone = Descriptors(32)
    network = SetNetwork(backbone, make_aggregator(name, backbone))
    train_sets(network, DescriptorSource(*descriptors(80, 4)), settings, folder)
    assert isinstance(network.aggregator, GeneralisedMean)
    return network.aggregator.p.detach()


def test_generalised_mean_learns_p_per_dimension_as_well_as_one(tmp_path: Path) -> None:
    one = learned_p("gem", tmp_path / "one")
    each = learned_p("gem-per-dim", tmp_path / "each")
    moved = abs(one.item() - 3.0)
    assert moved > 0.01
    assert 0.5 * moved < (each - 3.0).norm().item() < 2 * moved
    assert each.std().item() > 0.01
    assert 1.0 < each.min() <= each.max() < 6.0, "no exponent runs into a bound at once"


def test_folders_of_photos_train(tmp_path: Path) -> None:
    settings = load_settings("tiny", [*FACES, "pretrain.steps=2"])
    backbone = new_backbone(settings)
    assert backbone.spec is not None
    source = FaceFolder(photo_folder(tmp_path / "photos", 6, 2), backbone.spec, settings.augment)
    report = pretrain(backbone, source, settings, tmp_path / "run")
    assert report.last_loss > 0


def elements(people: int = 120, faces: int = 4, spread: float = 0.5) -> tuple[torch.Tensor, np.ndarray]:
    rows, labels = descriptors(people, faces, spread=spread)
    return unit(torch.from_numpy(rows)), labels.astype(np.int64)


def test_kmeans_finds_separate_clusters() -> None:
    centres = 10 * torch.eye(4)
    points = centres.repeat_interleave(30, 0) + 0.1 * torch.randn(
        120, 4, generator=torch.Generator().manual_seed(0)
    )
    found = kmeans(points, 4, seed=0)
    assert torch.cdist(centres, found).min(1).values.max() < 0.2


def test_the_soft_assignment_starts_as_a_softmax_of_distances_to_the_centres() -> None:
    x, _ = elements()
    vlad = NetVLAD(32, 4)
    alpha = initialise_netvlad(vlad, x, alpha=None)
    assert alpha > 0
    distances = torch.cdist(x, vlad.c) ** 2
    expected = torch.softmax(-alpha * distances, 1)
    torch.testing.assert_close(torch.softmax(x @ vlad.a.T + vlad.b, 1), expected, atol=1e-4, rtol=1e-3)


def test_batch_norm_starts_with_the_statistics_of_the_data() -> None:
    x, labels = elements()
    made = NetVLADAggregator(32, 16, clusters=4)
    initialise_aggregator(made, x, labels, number=1000)
    made.eval()
    indices, counts = random_sets(labels, (1, 2, 3), 1000, np.random.default_rng(0))
    with torch.no_grad():
        normed = made.norm(made.fc(made.vlad(x[indices], torch.from_numpy(counts))))
    assert normed.mean(0).abs().max() < 1e-3
    assert (normed.std(0) - 1).abs().max() < 1e-2
    torch.testing.assert_close(made.fc.weight @ made.fc.weight.T, torch.eye(16), atol=1e-4, rtol=0)


def first_rank_share(made: NetVLADAggregator, x: torch.Tensor, labels: np.ndarray) -> float:
    """Share of queries whose own set of three comes first among 100."""
    people = np.arange(90).reshape(30, 3)
    rows = np.array([[np.flatnonzero(labels == p)[0] for p in group] for group in people]).ravel()
    faces = np.array([np.flatnonzero(labels == p)[1] for p in people.ravel()])
    made.eval()
    with torch.no_grad():
        sets = made(x[rows], torch.full((30,), 3))
        queries = made.describe(x[faces])
    return float(((queries @ sets.T).argmax(1).numpy() == np.arange(90) // 3).mean())


def test_the_untrained_head_is_at_least_as_good_as_a_random_projection() -> None:
    x, labels = elements(spread=0.6)
    started, random = NetVLADAggregator(32, 16, clusters=8), NetVLADAggregator(32, 16, clusters=8)
    torch.manual_seed(0)
    initialise_aggregator(started, x, labels, number=2000)
    assert isinstance(random.vlad, NetVLAD)
    initialise_netvlad(random.vlad, x)
    torch.nn.init.normal_(random.fc.weight)
    assert first_rank_share(started, x, labels) >= first_rank_share(random, x, labels)
    assert first_rank_share(started, x, labels) > 10 / 30


def test_too_little_data_is_said() -> None:
    x, labels = elements(people=3, faces=2)
    with pytest.raises(TrainingError, match="k-means needs at least 8"):
        initialise_aggregator(NetVLADAggregator(32, 16, clusters=8), x, labels)
    x, labels = elements(people=20, faces=2)
    with pytest.raises(TrainingError, match="PCA to 64 dimensions needs more than 64 sets, got 40"):
        initialise_aggregator(NetVLADAggregator(32, 64, clusters=8), x, labels, number=40)
