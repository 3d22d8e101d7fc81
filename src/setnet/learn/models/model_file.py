"""A trained network as one safetensors file: weights, and the settings to build it again as metadata."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from setnet.errors import ModelError, VersionError
from setnet.learn.models.backbones.backbone import Backbone, make_backbone
from setnet.learn.models.backbones.sface import load_sface
from setnet.learn.models.backbones.vggface2 import load_vggface2
from setnet.learn.models.network import SetNetwork, make_aggregator
from setnet.learn.models.whitening import Whitening
from setnet.learn.training.training_settings import BackboneSettings, TrainingSettings

FORMAT = 1


@dataclass(frozen=True)
class StoredNetwork:
    """A network read from a file, with the settings and history stored beside it."""

    network: SetNetwork
    settings: TrainingSettings
    about: dict[str, Any]


def new_backbone(settings: TrainingSettings) -> Backbone:
    """Return the backbone that settings describe: from a VGGFace2 checkpoint when they name one, else fresh.

    SFace comes with the weights of its file in the model registry.
    """
    wanted = settings.backbone
    if wanted.name == "sface":
        return load_sface(wanted.dim, wanted.size)
    if wanted.weights:
        net = load_vggface2(wanted.weights, wanted.dim)
        net.recompute = wanted.recompute
        return net
    return make_backbone(wanted.name, wanted.dim, wanted.size, wanted.width, wanted.recompute)


def new_network(backbone: Backbone, settings: TrainingSettings) -> SetNetwork:
    """Return `backbone` with a fresh aggregator of the kind that settings describe."""
    wanted = settings.aggregator
    return SetNetwork(backbone, make_aggregator(wanted.name, backbone, wanted.dim, wanted.clusters))


def _shape(settings: BackboneSettings) -> tuple[str, int, int, float]:
    return settings.name, settings.dim, settings.size, settings.width


def _empty_backbone(settings: BackboneSettings, bias: bool, recompute: bool = False) -> Backbone:
    """Return a backbone to load weights into; those of VGGFace2 have no bias in their last layer."""
    backbone = make_backbone(*_shape(settings), recompute)
    if not bias and backbone.spec is not None:
        backbone.reduce.register_parameter("bias", None)
    return backbone


def save_backbone(path: Path, backbone: Backbone, settings: TrainingSettings, about: dict[str, Any]) -> None:
    """Write a pre-trained backbone."""
    _write(path, "backbone", backbone.state_dict(), settings, about, {})


def load_backbone(path: Path, settings: TrainingSettings) -> Backbone:
    """Return a pre-trained backbone; its file must hold the kind that `settings` name."""
    tensors, meta = _read(path, "backbone")
    stored = TrainingSettings.from_dict(meta["settings"])
    if _shape(stored.backbone) != _shape(settings.backbone):
        raise ModelError(f"{path}: holds {stored.backbone}, the settings name {settings.backbone}")
    backbone = _empty_backbone(settings.backbone, "reduce.bias" in tensors, settings.backbone.recompute)
    backbone.load_state_dict(tensors)
    return backbone.eval()


def save_network(path: Path, network: SetNetwork, settings: TrainingSettings, about: dict[str, Any]) -> None:
    """Write a network with its whitening, if it has any."""
    whitening = {"before": network.before is not None, "after": network.after is not None}
    _write(path, "network", network.state_dict(), settings, about, whitening)


def load_network(path: Path) -> StoredNetwork:
    """Return a stored network, ready to use."""
    tensors, meta = _read(path, "network")
    settings = TrainingSettings.from_dict(meta["settings"])
    network = new_network(_empty_backbone(settings.backbone, "backbone.reduce.bias" in tensors), settings)
    for place in ("before", "after"):
        if meta["whitening"][place]:
            setattr(network, place, Whitening(tensors[f"{place}.mean"], tensors[f"{place}.matrix"]))
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        raise ModelError(f"{path}: its weights do not fit its settings ({error})") from error
    network.eval()
    return StoredNetwork(network, settings, meta["about"])


def _write(
    path: Path,
    kind: str,
    state: dict[str, Any],
    settings: TrainingSettings,
    about: dict[str, Any],
    whitening: dict[str, bool],
) -> None:
    meta = {
        "format": FORMAT,
        "kind": kind,
        "settings": settings.as_dict(),
        "about": about,
        "whitening": whitening,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {k: v.detach().cpu().contiguous().clone() for k, v in state.items()}
    fresh = path.with_suffix(".tmp")
    save_file(tensors, fresh, metadata={"setnet-training": json.dumps(meta)})
    fresh.replace(path)


def _read(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    if not path.is_file():
        command = "pretrain" if kind == "backbone" else "sets"
        raise ModelError(f"{path}: no such {kind}; run `setnet train {command}` first")
    try:
        with safe_open(str(path), framework="pt") as file:
            meta = json.loads((file.metadata() or {}).get("setnet-training", "{}"))
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a mapping)
    except (OSError, SafetensorError, ValueError) as error:
        raise ModelError(f"{path}: not a readable {kind} ({error})") from error
    if meta.get("kind") != kind:
        raise ModelError(f"{path}: expected a {kind} written by `setnet train`, found {meta.get('kind')!r}")
    if meta["format"] > FORMAT:
        raise VersionError(
            f"{path}: format {meta['format']}; this setnet reads up to {FORMAT}: upgrade setnet"
        )
    return tensors, meta
