"""Export: the backbone as ONNX with its registry entry, the head as safetensors for the NumPy run time."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from setnet.errors import ModelError
from setnet.faces import write_model_entry
from setnet.heads import Affine, Branch, Head, Input, Layer, Logistic, NetVLAD, Product
from setnet.train.aggregators import Average, NetVLADAggregator, Sum, Whitening, unit
from setnet.train.backbones import Backbone
from setnet.train.network import SetNetwork


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


def head_of(
    network: SetNetwork, name: str, descriptor: str, about: Mapping[str, Any], bits: int = 32
) -> Head:
    """Return the run-time head of a network: NetVLAD or average, with its whitening and (w, b).

    Generalised means, memory vectors and MUVERA are comparisons only; they have no run-time form.
    """
    aggregator = network.aggregator
    branch: Branch
    output: list[Layer] = []
    if isinstance(aggregator, NetVLADAggregator):
        vlad = aggregator.vlad
        branch = NetVLAD(_numbers(vlad.a.T), _numbers(vlad.b), _numbers(vlad.c))
        output.append(_folded(aggregator))
    elif isinstance(aggregator, Average) and not isinstance(aggregator, Sum):
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
    head_of(network, name, descriptor, about, bits).save(head, half=False)
    return ExportedNetwork(head, backbone, entry)


def _folded(aggregator: NetVLADAggregator) -> Affine:
    """Return the fully-connected layer with batch norm's running statistics folded in."""
    norm = aggregator.norm
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    return Affine(
        _numbers((aggregator.fc.weight * scale[:, None]).T), _numbers(norm.bias - norm.running_mean * scale)
    )


def _affine(whitening: Whitening) -> Affine:
    return Affine(_numbers(whitening.matrix), _numbers(-whitening.mean @ whitening.matrix))


def _numbers(tensor: Tensor) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().contiguous().numpy(), dtype=np.float32)
