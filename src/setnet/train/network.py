"""A network for sets: backbone and aggregator, its file, its use like a head, and its export.

The backbone is exported as ONNX with its registry entry, the head as safetensors for the NumPy run time.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from setnet.errors import ModelError, VersionError, choice_error
from setnet.faces import add_model_file
from setnet.faces.registry import ModelEntry, hash_file, write_model_entry
from setnet.heads import Aggregator, Head, Logistic
from setnet.heads.layers import Affine, Branch, Input, Layer, NetVLAD, Product
from setnet.train.aggregators import (
    AggregatorModule,
    Average,
    AverageBeforeFC,
    AverageFC,
    GeneralisedMean,
    HashedNetVLAD,
    MemoryVector,
    NetVLADAggregator,
    WhiteningLayer,
    unit,
)
from setnet.train.backbones import Backbone, make_backbone
from setnet.train.resnet import load_vggface2
from setnet.train.settings import BackboneSettings, TrainingSettings

AGGREGATORS = ("average", "average-fc", "before-fc", "gem", "gem-per-dim", "hashed", "memory", "netvlad")


def make_aggregator(name: str, backbone: Backbone, dim: int = 128, clusters: int = 8) -> AggregatorModule:
    """Return a fresh aggregator for `backbone`; `dim` and `clusters` apply to those that have them."""
    if name == "average":
        return Average(backbone.dim)
    if name == "average-fc":
        return AverageFC(backbone.dim, dim)
    if name == "before-fc":
        if not isinstance(getattr(backbone, "reduce", None), nn.Linear):
            raise ModelError(
                "aggregating before the last layer needs a backbone with one; descriptors have none"
            )
        return AverageBeforeFC(backbone.reduce)
    if name in ("gem", "gem-per-dim"):
        return GeneralisedMean(backbone.dim, per_dimension=name == "gem-per-dim")
    if name == "hashed":
        return HashedNetVLAD(backbone.dim, clusters)
    if name == "memory":
        return MemoryVector(backbone.dim)
    if name == "netvlad":
        return NetVLADAggregator(backbone.dim, dim, clusters)
    raise choice_error("aggregator", name, AGGREGATORS)


class SetNetwork(nn.Module):
    """Faces in, set vectors out; `w` and `b` are the logistic classifier of eq. 2.

    Whitening *before* turns descriptors into whitened descriptors ahead of the aggregation, whitening *after*
    applies to set vectors and query vectors alike.
    """

    def __init__(
        self, backbone: Backbone, aggregator: AggregatorModule, w: float = 10.0, b: float = -5.0
    ) -> None:
        super().__init__()
        wanted = backbone.feature_dim if aggregator.before_fc else backbone.dim
        if aggregator.element_dim != wanted:
            raise ModelError(
                f"the aggregator takes {aggregator.element_dim} dimensions, the backbone gives {wanted}"
            )
        self.backbone = backbone
        self.aggregator = aggregator
        self.w = nn.Parameter(torch.tensor(float(w)))
        self.b = nn.Parameter(torch.tensor(float(b)))
        self.before: WhiteningLayer | None = None
        self.after: WhiteningLayer | None = None

    def elements(self, faces: Tensor) -> Tensor:
        """Return what is aggregated, a row per face: unit descriptors, or features before the last layer."""
        features = self.backbone.features(faces)
        if self.aggregator.before_fc:
            return features
        reduced = features if self.backbone.spec is None else self.backbone.reduce(features)
        return unit(reduced)

    def aggregate(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return one vector per set of elements."""
        pooled: Tensor = self.aggregator(self._prepare(elements), counts)
        return pooled if self.after is None else self.after(pooled)

    def describe(self, elements: Tensor) -> Tensor:
        """Return the query vector of each element."""
        vectors = self.aggregator.describe(self._prepare(elements))
        return vectors if self.after is None else self.after(vectors)

    def _prepare(self, elements: Tensor) -> Tensor:
        return elements if self.before is None else self.before(elements)

    def logits(self, queries: Tensor, sets: Tensor) -> Tensor:
        """Return w <v_f, v_set> + b for all pairs, (queries, sets)."""
        return self.w * (queries @ sets.T) + self.b


def learned_exponents(network: SetNetwork) -> list[float]:
    """Return the exponents that a generalised mean learned; none for other aggregators."""
    aggregator = network.aggregator
    return aggregator.exponents.tolist() if isinstance(aggregator, GeneralisedMean) else []


Floats = NDArray[np.float32]
SETS_AT_ONCE = 4096


class NetworkAggregator(Aggregator):
    """Aggregates the *elements* that a network makes in float32; see `setnet.heads.Aggregator`."""

    def __init__(self, network: SetNetwork, name: str) -> None:
        self.network = network.eval()
        self.name, self.bits = name, 1 if isinstance(network.aggregator, HashedNetVLAD) else 32
        self.element_dim, self.dim = network.aggregator.element_dim, network.aggregator.dim
        self.logistic = Logistic(max(network.w.item(), 1e-3), network.b.item())

    @property
    def exponents(self) -> list[float]:
        """The exponents p that a generalised mean learned; none for other aggregators."""
        return learned_exponents(self.network)

    def describe(self, elements: Floats) -> Floats:
        """Return the query vectors of single elements."""
        with torch.no_grad():
            return np.asarray(self.network.describe(torch.from_numpy(np.ascontiguousarray(elements))).numpy())

    def pool(self, elements: Floats, counts: NDArray[np.int64]) -> Floats:
        """Return one set vector per set."""
        ends = np.cumsum(counts)
        out = np.empty((len(counts), self.dim), dtype=np.float32)
        with torch.no_grad():
            for first in range(0, len(counts), SETS_AT_ONCE):
                some = counts[first : first + SETS_AT_ONCE]
                start = int(ends[first] - counts[first])
                rows = torch.from_numpy(np.ascontiguousarray(elements[start : start + int(some.sum())]))
                out[first : first + len(some)] = self.network.aggregate(rows, torch.from_numpy(some)).numpy()
        return out


FORMAT = 1


@dataclass(frozen=True)
class StoredNetwork:
    """A network read from a file, with the settings and history stored beside it."""

    network: SetNetwork
    settings: TrainingSettings
    about: dict[str, Any]


def new_backbone(settings: TrainingSettings) -> Backbone:
    """Return the backbone that settings describe: fresh, or from the VGGFace2 checkpoint that they name."""
    wanted = settings.backbone
    if wanted.weights:
        net = load_vggface2(wanted.weights, wanted.dim)
        net.recompute = wanted.recompute
        return net
    return make_backbone(wanted)


def new_network(backbone: Backbone, settings: TrainingSettings) -> SetNetwork:
    """Return `backbone` with a fresh aggregator of the kind that settings describe."""
    wanted = settings.aggregator
    return SetNetwork(backbone, make_aggregator(wanted.name, backbone, wanted.dim, wanted.clusters))


def _shape(settings: BackboneSettings) -> tuple[str, int, int, float]:
    return settings.name, settings.dim, settings.size, settings.width


def _empty_backbone(settings: BackboneSettings, bias: bool) -> Backbone:
    """Return a backbone to load weights into; those of VGGFace2 have no bias in their last layer."""
    backbone = make_backbone(settings)
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
    backbone = _empty_backbone(settings.backbone, "reduce.bias" in tensors)
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
            setattr(network, place, WhiteningLayer(tensors[f"{place}.mean"], tensors[f"{place}.matrix"]))
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


@dataclass(frozen=True)
class ExportedNetwork:
    """The files written; `backbone` and `entry` are None for a network on descriptors already computed."""

    head: Path
    backbone: Path | None
    entry: Path | None


class _UnitDescriptors(nn.Module):
    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, images: Tensor) -> Tensor:
        return unit(self.backbone(images))


def export_backbone(backbone: Backbone, path: Path, name: str) -> Path:
    """Write the backbone as ONNX, unit descriptors out, and its registry entry; return the entry's path."""
    spec = backbone.spec
    if spec is None:
        raise ModelError("descriptors already computed have no backbone to export")
    if len(set(spec.std)) != 1:
        raise ModelError(f"the registry knows one scale for all channels, the backbone has {spec.std}")
    path.parent.mkdir(parents=True, exist_ok=True)
    module = _UnitDescriptors(backbone).eval().cpu()
    example = torch.zeros(2, 3, spec.size, spec.size)
    # The exporter reports its progress on stdout and warns of its own internals.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            (example,),
            str(path),
            input_names=["faces"],
            output_names=["descriptors"],
            dynamic_shapes={"images": {0: torch.export.Dim("n", min=1)}},
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    return write_model_entry(
        path,
        name=name,
        dim=backbone.dim,
        size=spec.size,
        colour="rgb",
        mean=list(spec.mean),
        scale=1.0 / spec.std[0],
        align=spec.align,
        output="descriptors",
        licence="see the licence of the training data",
    )


def add_vggface2(file: Path, name: str | None = None, licence: str | None = None) -> ModelEntry:
    """Add a checkpoint of VGGFace2's ResNet-50 or SENet-50 to the models that describe faces.

    Its SHA-256 stands in the entry, where `setnet models` shows what a model was made from.
    """
    backbone, name = load_vggface2(file), name or file.stem
    origin = f"{file.name}, SHA-256 {hash_file(file)}"
    with TemporaryDirectory() as folder:
        made = Path(folder) / "backbone.onnx"
        export_backbone(backbone, made, name)
        return add_model_file(made, name=name, kind="vggface2", licence=licence, origin=origin)


def make_head(
    network: SetNetwork, name: str, descriptor: str, about: Mapping[str, Any], bits: int = 32
) -> Head:
    """Return the run-time head of a network: NetVLAD or average, with its whitening and (w, b).

    Generalised means and memory vectors are comparisons only; they have no run-time form.
    """
    aggregator = network.aggregator
    branch: Branch
    output: list[Layer] = []
    if type(aggregator) is NetVLADAggregator and not isinstance(aggregator.vlad, Average):
        vlad = aggregator.vlad
        branch = NetVLAD(_numbers(vlad.a.T), _numbers(vlad.b), _numbers(vlad.c))
        output.append(_fold_norm(aggregator))
    elif isinstance(aggregator, Average):
        branch = Product((np.eye(aggregator.element_dim, dtype=np.float32),))
    else:
        raise ModelError(
            f"{type(aggregator).__name__} has no run-time form: train a 'netvlad' or an 'average' "
            "aggregator, or compare this one by `setnet evaluate ... --head RUN/network.safetensors`"
        )
    if network.after is not None:
        output.append(_affine(network.after))
    before = network.before
    given = Input() if before is None else Input(_numbers(before.mean), _numbers(before.matrix))
    return Head(
        name=name,
        element_dim=aggregator.element_dim,
        bits=bits,
        logistic=Logistic(network.w.item(), network.b.item()),
        branches=(branch,),
        input=given,
        output=tuple(output),
        descriptor=descriptor,
        about=dict(about),
    )


def export_network(
    network: SetNetwork, folder: Path, name: str, descriptor: str, about: Mapping[str, Any], bits: int = 32
) -> ExportedNetwork:
    """Write ``folder/name.safetensors`` and, for a network with a backbone, ``folder/name-faces.onnx``."""
    folder.mkdir(parents=True, exist_ok=True)
    backbone, entry = None, None
    if network.backbone.spec is not None:
        descriptor = f"{name}-faces"
        backbone = folder / f"{descriptor}.onnx"
        entry = export_backbone(network.backbone, backbone, descriptor)
    head = folder / f"{name}.safetensors"
    make_head(network, name, descriptor, about, bits).save(head, half=False)
    return ExportedNetwork(head, backbone, entry)


def _fold_norm(aggregator: NetVLADAggregator) -> Affine:
    """Return the fully-connected layer with batch norm's running statistics folded in."""
    norm = aggregator.norm
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    return Affine(
        _numbers((aggregator.fc.weight * scale[:, None]).T), _numbers(norm.bias - norm.running_mean * scale)
    )


def _affine(whitening: WhiteningLayer) -> Affine:
    return Affine(_numbers(whitening.matrix), _numbers(-whitening.mean @ whitening.matrix))


def _numbers(tensor: Tensor) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().contiguous().numpy(), dtype=np.float32)
