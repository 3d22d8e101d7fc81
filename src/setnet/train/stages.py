"""The stages of a run, each also a command, and the variants that the claim compares."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

from setnet.collect.dataset import is_collected
from setnet.errors import InvalidInputError, TrainingError, choice_error
from setnet.train.aggregators import (
    AggregatorModule,
    AverageBeforeFC,
    GeneralisedMean,
    HashedNetVLAD,
    NetVLADAggregator,
    WhiteningLayer,
    random_sets,
)
from setnet.train.backbones import BACKBONES, Backbone, Descriptors
from setnet.train.faces import CollectedFaces, FaceFolder, FaceSource
from setnet.train.loop import ProcessGroup, TrainReport, own_device, process_group
from setnet.train.network import (
    ExportedNetwork,
    SetNetwork,
    export_network,
    learned_exponents,
    load_backbone,
    load_network,
    new_backbone,
    new_network,
    save_backbone,
    save_network,
)
from setnet.train.settings import TrainingSettings
from setnet.train.sources import DescriptorSource, LabelledSource, TrainingSource, VirtualSource
from setnet.train.training import (
    SAMPLE,
    calibrate_network,
    compute_elements,
    initialise_network,
    pretrain,
    train_sets,
)


@dataclass(frozen=True)
class Variant:
    """A network of the comparison.

    Attributes
    ----------
    size
        The set size in training; None for no set training.
    clusters, alpha
        NetVLAD's clusters and the softness of its start, where they are not the settings' own; alpha 0 makes
        the nearest centre outweigh the second 100 to 1.
    """

    name: str
    aggregator: str
    size: int | None
    clusters: int | None = None
    alpha: float | None = None

    @property
    def folder(self) -> str:
        """A file name for it."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


VARIANTS = (
    Variant("Baseline", "average", None),
    Variant("Baseline-2", "average", 2),
    Variant("Baseline-3", "average", 3),
    Variant("Baseline-2 (agg. before FC)", "before-fc", 2),
    Variant("Baseline-GM-2", "gem", 2),
    Variant("Baseline-GM-2 (p per dim.)", "gem-per-dim", 2),
    Variant("Baseline-2 with NetVLAD's FC and norm", "average-fc", 2),
    Variant("Memory vectors", "memory", None),
    Variant("SetNet", "netvlad", None),
    Variant("SetNet-2", "netvlad", 2),
    Variant("SetNet-3", "netvlad", 3),
    Variant("AggNet-3", "hashed", 3),
)


def train_variant(
    variant: Variant,
    backbone_file: Path,
    source: TrainingSource,
    settings: TrainingSettings,
    out: Path,
    group: ProcessGroup | None = None,
    device: str = "cpu",
    workers: int = 0,
) -> SetNetwork:
    """Return the variant's network, initialised and trained; kept in `out` and read from there."""
    folder = out / variant.folder
    stored = folder / "network.safetensors"
    shape = settings.aggregator
    own = replace(
        settings,
        aggregator=replace(
            shape,
            name=variant.aggregator,
            clusters=shape.clusters if variant.clusters is None else variant.clusters,
            alpha=shape.alpha if variant.alpha is None else variant.alpha,
        ),
        sets=replace(settings.sets, sizes=(variant.size or 2,)),
    )
    group = group or ProcessGroup()
    if stored.is_file():
        known = load_network(stored)
        if known.settings != own:
            raise TrainingError(f"{stored} was trained with other settings: use another folder, or remove it")
        return known.network
    torch.manual_seed(settings.seed)
    backbone = load_backbone(backbone_file, settings)
    network = new_network(backbone, own)
    if variant.size is None:
        initialise_network(network.to(device), source, own, device)
    else:
        train_sets(network, source, own, folder, group, device, workers=workers)
    network.cpu().eval()
    if group.rank == 0:
        save_network(stored, network, own, {"variant": variant.name})
    return network


Source = TypeVar("Source", bound=LabelledSource)
logger = logging.getLogger(__name__)
PLACES = "places.bin"  # of a run's folder: where the faces are in its photos

_WHITENED_AFTER: dict[type[AggregatorModule], str] = {
    AverageBeforeFC: "its elements are the features before the last layer",
    GeneralisedMean: "whitening changes the elements' signs",
    NetVLADAggregator: "its centres were learned for descriptors that are not whitened",
}


def run_pretrain(
    data: Path, out: Path, settings: TrainingSettings, device: str = "cpu", workers: int = 0
) -> TrainReport:
    """Pre-train the backbone on the folders of identities in `data`; writes ``backbone.safetensors``."""
    torch.manual_seed(settings.seed)
    device = own_device(device)
    backbone = new_backbone(settings)
    if backbone.spec is None:
        raise TrainingError("descriptors already computed have nothing to pre-train: use `setnet train sets`")
    spec = backbone.spec
    with process_group(device) as group:
        source = group.after_first(lambda: FaceFolder(data, spec, settings.augment, out / PLACES))
        _log_skipped(source)
        source, held = _hold_out(source, settings.pretrain.validate)
        report = pretrain(
            backbone, source, settings, out / "pretrain", group, device, workers=workers, validation=held
        )
        if group.rank == 0:
            about = {
                "pretrained on": f"{source.people} people, {len(source.faces)} faces",
                "steps": report.steps,
            }
            save_backbone(out / "backbone.safetensors", backbone, settings, about)
    return report


def run_sets(
    data: Path,
    out: Path,
    settings: TrainingSettings,
    device: str = "cpu",
    virtual: bool = False,
    workers: int = 0,
) -> TrainReport:
    """Initialise and train the aggregator, end to end or on descriptors; writes ``network.safetensors``.

    `virtual` draws the training people from the distribution of the descriptors in `data` instead of the
    people themselves.
    """
    torch.manual_seed(settings.seed)
    device = own_device(device)
    backbone = _backbone(out, settings)
    network = new_network(backbone, settings)
    with process_group(device) as group:
        source = group.after_first(lambda: open_source(data, backbone, settings, out, virtual))
        held = None
        if isinstance(source, LabelledSource):
            source, held = _hold_out(source, settings.sets.validate)
        if not isinstance(source, FaceSource):
            workers = 0  # descriptors are there already
        report = train_sets(
            network, source, settings, out / "sets", group, device, workers=workers, validation=held
        )
        is_new = report.resumed_at < report.steps or not (out / "network.safetensors").exists()
        if group.rank == 0 and is_new:  # else a whitening added since would be lost
            network.cpu()
            about = {"trained on": source.where, "people": source.people, "steps": report.steps}
            if learned_exponents(network):
                about["p"] = [round(p, 4) for p in learned_exponents(network)]
            save_network(out / "network.safetensors", network, settings, about)
    return report


@dataclass(frozen=True)
class WhitenReport:
    """How many vectors the whitening was fitted on, and the (w, b) fitted after it."""

    place: str
    vectors: int
    w: float
    b: float


def run_whiten(
    data: Path, out: Path, place: str = "after", ridge: float = 0.01, device: str = "cpu"
) -> WhitenReport:
    """Fit whitening on training data, put it into ``network.safetensors`` and calibrate (w, b) again."""
    stored = load_network(out / "network.safetensors")
    network, settings = stored.network, stored.settings
    source = open_source(data, network.backbone, settings, out)
    draw = source.sample(np.random.default_rng(settings.seed), SAMPLE)
    elements = compute_elements(network.to(device), source, draw.picks, device)
    network.cpu()
    vectors = whiten(network, elements, draw.labels, settings.sets.sizes, place, ridge, settings.seed)
    calibrate_network(network, elements, draw.labels, settings.sets.sizes, settings.seed)
    save_network(out / "network.safetensors", network, settings, stored.about | {"whitening": place})
    return WhitenReport(place, vectors, network.w.item(), network.b.item())


def whiten(
    network: SetNetwork,
    elements: torch.Tensor,
    labels: np.ndarray,
    sizes: tuple[int, ...],
    place: str = "after",
    ridge: float = 0.01,
    seed: int = 0,
) -> int:
    """Give `network` a whitening of its elements (``before``) or of its set vectors (``after``), in place."""
    if place not in ("before", "after"):
        raise choice_error("place of whitening", place, ["before", "after"])
    kind = type(network.aggregator)
    if kind is HashedNetVLAD:
        raise InvalidInputError("AggNet's set vectors are signs: whitening would make them floats")
    if place == "before" and kind in _WHITENED_AFTER:
        raise InvalidInputError(
            f"{kind.__name__} can only be whitened after aggregation: {_WHITENED_AFTER[kind]}"
        )
    network.before = network.after = None
    with torch.no_grad():
        if place == "before":
            network.before = WhiteningLayer.fit(elements, ridge)
            return len(elements)
        number = max(4000, 8 * network.aggregator.dim)
        indices, counts = random_sets(labels, sizes, number, np.random.default_rng(seed))
        vectors = network.aggregate(elements[indices], torch.from_numpy(counts))
        network.after = WhiteningLayer.fit(vectors, ridge)
    return len(vectors)


def run_export(out: Path, name: str, descriptor: str = "", bits: int = 32) -> ExportedNetwork:
    """Write the trained network of a run to ``export/``: ONNX backbone and safetensors head."""
    stored = load_network(out / "network.safetensors")
    about = {"settings": stored.settings.as_dict()} | stored.about
    return export_network(stored.network, out / "export", name, descriptor, about, bits)


def open_source(
    data: Path, backbone: Backbone, settings: TrainingSettings, out: Path, virtual: bool = False
) -> TrainingSource:
    """Return the source in `data`: folders of identities, descriptors, or virtual people like them.

    Descriptors are those of a file, or of the training people of a data set of `setnet collect`.

    Where the faces are in photos is kept in the run's folder `out`.
    """
    if backbone.spec is not None and is_collected(data) and not virtual:
        source: TrainingSource = CollectedFaces(data, backbone.spec, settings.augment)
    elif backbone.spec is not None:
        if virtual or data.suffix == ".npz":
            raise InvalidInputError(
                f"backbone {settings.backbone.name!r} trains on photos, not on descriptors"
            )
        source = FaceFolder(data, backbone.spec, settings.augment, out / PLACES)
    else:
        known = DescriptorSource.open(data)
        if known.dim != backbone.dim:
            raise InvalidInputError(
                f"{data}: descriptors of {known.dim} dimensions, the settings say backbone.dim={backbone.dim}"
            )
        source = VirtualSource.fit(known) if virtual else known
    _log_skipped(source)
    return source


def _backbone(out: Path, settings: TrainingSettings) -> Backbone:
    if settings.backbone.name == "descriptors":
        return Descriptors(settings.backbone.dim)
    if settings.backbone.name not in BACKBONES:
        raise choice_error("backbone", settings.backbone.name, BACKBONES)
    stored = out / "backbone.safetensors"
    if not stored.is_file() and settings.backbone.weights:
        return new_backbone(settings)
    return load_backbone(stored, settings)


def _hold_out(source: Source, people: int) -> tuple[Source, Source | None]:
    """Return a source without its validation people, and these; both phases of a run hold out the same."""
    return source.hold_out(people) if people else (source, None)


def _log_skipped(source: TrainingSource) -> None:
    if source.skipped:
        logger.info("%s: %s people with one face left out", source.where, source.skipped)
