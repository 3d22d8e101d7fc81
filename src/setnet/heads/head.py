"""A head as a file: one safetensors file that holds everything needed to make and score set vectors.

What a head computes, for the elements x_1 ... x_F of a set (rows; all arithmetic in float32):

1. input    x = unit(x) if ``unit_first``; x = (x - mean) weight; x = unit(x) if ``unit_last``
2. lift     each branch gives l_j(x); the contribution of an element is the concatenation of
            share_j unit(l_j(x)), scaled to length one (the paper's normalised contributions)
3. sum      v = unit(sum of the contributions of the set)
4. output   for each layer in turn: v = unit(layer(v))                    -> `SetNet.pool`
5. code     v in ``bits`` per dimension, see `setnet.heads.codec`          -> `SetNet.encode`

A query is a set of one element, not quantised (`SetNet.describe`). Score: sigmoid(w <code, query> + b).

Tensors (float16 or float32 on disk; absent ones mean "nothing to do"):

==========================  =====================  ==========================================================
input.mean                  (De,)
input.weight                (De, Dx)
branches.J.a, .b, .c        (Dx, K) (K,) (K, Dx)   kind "netvlad": softmax(x a + b)_k (x - c_k), k-major
branches.J.factors.I        (Dx, Dj)               kind "product": the elementwise product of all x R_I;
                                                   one factor is a plain projection
output.J.weight, .bias      (in, out) (out,)       kind "affine": v W + b (FC, batch norm folded; whitening)
output.J.blocks             (G, m, p)              kind "blocks": block-diagonal, then groups and dims swapped
==========================  =====================  ==========================================================

Metadata: the one key ``setnet`` holds JSON::

    {"format": 1, "name": "sface-512", "descriptor": "sface", "element_dim": 128, "dim": 4096, "bits": 1,
     "logistic": {"w": 60.0, "b": -6.0},
     "input": {"unit_first": true, "unit_last": true},
     "branches": [{"kind": "product", "share": 1.0}],
     "output": [{"kind": "affine"}],
     "about": {...}}

``descriptor`` names the face descriptors it was made for, ``about`` says how it was made and how good it is
(free JSON); a ``fingerprint`` in it is that of the file before its figures were written, which indexes made
with the head know it by. `Head.save` and `Head.load` are the only writers and readers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import ModelError, VersionError
from setnet.heads import codec
from setnet.heads.layers import Affine, Blocks, Branch, Input, Layer, NetVLAD, Product
from setnet.heads.logistic import Logistic
from setnet.heads.tensor_file import read_tensors, write_tensors

FORMAT = 1
_BRANCHES: dict[str, type[Any]] = {"netvlad": NetVLAD, "product": Product}
_LAYERS: dict[str, type[Any]] = {"affine": Affine, "blocks": Blocks}


@dataclass(frozen=True)
class Head:
    """All the numbers of a head and what they are for; `SetNet` runs it.

    Raises
    ------
    ModelError
        If the parts do not fit one another.
    """

    name: str
    element_dim: int
    bits: int
    logistic: Logistic
    branches: tuple[Branch, ...]
    input: Input = field(default_factory=Input)
    output: tuple[Layer, ...] = ()
    descriptor: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.branches:
            raise ModelError(f"head {self.name!r} has no branches; it needs at least one")
        mean, weight = self.input.mean, self.input.weight
        if (mean is not None and len(mean) != self.element_dim) or (
            weight is not None and len(weight) != self.element_dim
        ):
            raise ModelError(f"head {self.name!r}: its input does not take {self.element_dim} dimensions")
        prepared = self.input.width(self.element_dim)
        for branch in self.branches:
            if branch.element_dim != prepared:
                raise ModelError(
                    f"head {self.name!r}: a branch takes {branch.element_dim} dimensions, "
                    f"the input gives {prepared}"
                )
            if not 1e-6 <= branch.share <= 1e6:
                raise ModelError(
                    f"head {self.name!r}: a branch's share must be positive, 1e-6 to 1e6, not {branch.share}"
                )
        codec.row_bytes(self.dim, self.bits)

    @property
    def lifted_dim(self) -> int:
        """Dimension of an element's contribution: the branches side by side."""
        return sum(branch.width for branch in self.branches)

    @property
    def dim(self) -> int:
        """Dimension of a set vector."""
        dim = self.lifted_dim
        for layer in self.output:
            dim = layer.width(dim)
        return dim

    @property
    def bytes_per_item(self) -> int:
        """Bytes of a set vector in an index."""
        return codec.row_bytes(self.dim, self.bits)

    def with_logistic(self, logistic: Logistic) -> Head:
        """Return the same head with another (w, b)."""
        return replace(self, logistic=logistic)

    def save(self, path: str | Path, *, half: bool = True) -> None:
        """Write the head to ``path``; weights as float16 unless ``half`` is false."""
        tensors = _tensors("input.", self.input)
        for place, parts in (("branches", self.branches), ("output", self.output)):
            for j, part in enumerate(parts):
                tensors |= _tensors(f"{place}.{j}.", part)
        meta = {
            "format": FORMAT,
            "name": self.name,
            "descriptor": self.descriptor,
            "element_dim": self.element_dim,
            "dim": self.dim,
            "bits": self.bits,
            "logistic": {"w": self.logistic.w, "b": self.logistic.b},
            "input": {"unit_first": self.input.unit_first, "unit_last": self.input.unit_last},
            "branches": [{"kind": _kind(branch), "share": branch.share} for branch in self.branches],
            "output": [{"kind": _kind(layer)} for layer in self.output],
            "about": dict(self.about),
        }
        kind_on_disk = np.float16 if half else np.float32
        stored = {key: np.ascontiguousarray(value, dtype=kind_on_disk) for key, value in tensors.items()}
        write_tensors(Path(path), stored, {"setnet": json.dumps(meta, sort_keys=True)})

    @classmethod
    def load(cls, path: str | Path) -> Head:
        """Read a head; `ModelError` if the file is none or is damaged, `VersionError` if it is too new."""
        path = Path(path)
        if not path.is_file():
            raise ModelError(
                f"no head at {path}: expected a .safetensors file written by `setnet train export`"
            )
        try:
            tensors, texts = read_tensors(path)
            meta = json.loads(texts.get("setnet", "null"))
        except (OSError, ValueError, RecursionError) as error:
            raise ModelError(f"{path} is not a readable head: {error}") from error
        if not isinstance(meta, dict) or not isinstance(meta.get("format"), int):
            raise ModelError(f"{path} holds tensors but no head: its metadata lacks the key 'setnet'")
        if meta["format"] > FORMAT:
            raise VersionError(
                f"{path} is a head of format {meta['format']}; this setnet reads up to {FORMAT}"
            )
        try:
            head = cls(
                name=meta["name"],
                element_dim=meta["element_dim"],
                bits=meta["bits"],
                logistic=Logistic(**meta["logistic"]),
                branches=tuple(
                    _part(_BRANCHES, tensors, f"branches.{j}.", spec)
                    for j, spec in enumerate(meta["branches"])
                ),
                input=Input(tensors.get("input.mean"), tensors.get("input.weight"), **meta["input"]),
                output=tuple(
                    _part(_LAYERS, tensors, f"output.{j}.", spec) for j, spec in enumerate(meta["output"])
                ),
                descriptor=meta["descriptor"],
                about=dict(meta["about"].items()),
            )
            if head.dim != meta["dim"]:
                raise ModelError(
                    f"{path}: its weights give {head.dim} dimensions, its metadata says {meta['dim']}"
                )
        except (KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"{path} is an incomplete head: {error!r}") from error
        return head


def _kind(part: Branch | Layer) -> str:
    """Return what a part is called in a file."""
    return next(kind for kind, cls in (_BRANCHES | _LAYERS).items() if isinstance(part, cls))


def _tensors(prefix: str, part: Input | Branch | Layer) -> dict[str, NDArray[Any]]:
    """Return the weights of a part by their names in a file."""
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    for i, factor in enumerate(values.pop("factors", ())):
        values[f"factors.{i}"] = factor
    return {prefix + name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def _part(
    kinds: Mapping[str, type[Any]], tensors: Mapping[str, NDArray[Any]], prefix: str, spec: Mapping[str, Any]
) -> Any:
    """Return a part of one of some kinds, from what the file says of it and its weights."""
    if spec["kind"] not in kinds:
        raise ModelError(f"unknown kind of part {spec['kind']!r}: valid are {', '.join(map(repr, kinds))}")
    own = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    if spec["kind"] == "product":
        own = {"factors": tuple(own[f"factors.{i}"] for i in range(len(own)))}  # type: ignore[dict-item]
    return kinds[spec["kind"]](**own, **{name: value for name, value in spec.items() if name != "kind"})
