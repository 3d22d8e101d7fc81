"""The networks that section 5 of the paper compares, all trained from one pre-trained backbone."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from setnet.errors import TrainingError
from setnet.learn.data.face_source import FaceSource
from setnet.learn.models.model_file import load_backbone, load_network, new_network, save_network
from setnet.learn.models.network import SetNetwork
from setnet.learn.training.set_training import initialise_network, train_sets
from setnet.learn.training.training_settings import TrainingSettings


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
    Variant("Memory vectors", "memory", None),
    Variant("MUVERA", "muvera", None),
    Variant("SetNet", "netvlad", None),
    Variant("SetNet-2", "netvlad", 2),
    Variant("SetNet-3", "netvlad", 3),
)

# What SetNet-2 is without one of its parts each; the loss is the other thing to change.
WITHOUT = (
    Variant("SetNet-2, hard start", "netvlad", 2, alpha=0.0),
    Variant("SetNet-2, one cluster", "netvlad", 2, clusters=1),
)


def trained_variant(
    variant: Variant, backbone_file: Path, source: FaceSource, settings: TrainingSettings, out: Path
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
    if stored.is_file():
        known = load_network(stored)
        if known.settings != own:
            raise TrainingError(f"{stored} was trained with other settings: use another folder, or remove it")
        return known.network
    torch.manual_seed(settings.seed)
    backbone = load_backbone(backbone_file, settings)
    network = new_network(backbone, own)
    if variant.size is None:
        initialise_network(network, source, own)
    else:
        train_sets(network, source, own, folder)
    network.eval()
    save_network(stored, network, own, {"variant": variant.name})
    return network
