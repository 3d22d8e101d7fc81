"""The methods that are compared: heads, lifts and pooled baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, choice_error
from setnet.evaluate.people import LabelledPeople
from setnet.evaluate.ranking_calibration import best_logistic, with_distractors
from setnet.evaluate.record import fingerprint
from setnet.evaluate.representations import EveryElement, SetVectors
from setnet.evaluate.stress_trial import DISTRACTORS, Representation, StressTest, stress_world
from setnet.heads import Aggregator, Logistic, Mean, SetNet, unit
from setnet.heads.shipped import head_path, shipped_names
from setnet.heads.tensor_file import read_texts
from setnet.heads.whitening import Whitening, fit_whitening
from setnet.train import RECIPES, fit_head


@cache
def load_head(name: str) -> Aggregator:
    """Return a shipped head, a head's file, or the ``network.safetensors`` of a training run.

    The last is for comparisons such as generalised means (``gem``, ``gem-per-dim``); it runs in torch.
    """
    if Path(name).suffix != ".safetensors" or "setnet-training" not in read_texts(Path(name)):
        return SetNet.load(name)
    from setnet.train import NetworkAggregator, load_network  # imports torch

    return NetworkAggregator(load_network(Path(name)).network, name)


Floats = NDArray[np.float32]


class Whitened(Aggregator):
    """Another aggregator with whitening of its elements (before) or of its set vectors (after)."""

    def __init__(self, inner: Aggregator, whitening: Whitening, where: str) -> None:
        self.inner, self.whitening, self.where = inner, whitening, where
        self.name, self.logistic = f"{inner.name}+W-{where}", inner.logistic
        self.element_dim, self.dim, self.bits = inner.element_dim, inner.dim, inner.bits

    def pool(self, elements: Floats, counts: NDArray[np.int64]) -> Floats:
        """Return unit-norm set vectors."""
        if self.where == "before":
            return self.inner.pool(self.whitening(elements), counts)
        return self.whitening(self.inner.pool(elements, counts))


PAPER_P = 1.43  # what the paper's network learned (section 5.2)
BASELINES: dict[str, str] = {
    "mean": "average pooling",
    "mean 8 bit": "average pooling, 8 bits per dimension",
    "mean +W": "descriptors whitened, then averaged",
    "mean +W after": "averaged, then whitened",
}
# From `setnet.train`: shown when its extra is installed.
IN_TORCH: dict[str, str] = {
    "gm signed": f"generalised mean that keeps signs, p = {PAPER_P}",
    "gm signed +W after": f"generalised mean that keeps signs, p = {PAPER_P}, then whitened",
    "memory": "memory vectors: the pseudo-inverse of a set's descriptors",
}
WHITEN_UP_TO = 512


@dataclass(frozen=True)
class Method:
    """A way to make set vectors, under the name it has in tables."""

    name: str
    aggregator: Aggregator
    logistic: Logistic
    note: str


@dataclass(frozen=True, eq=False)
class Methods:
    """Makes methods by name, fitted on people who are not in the test.

    The shipped heads were fitted to real faces: of virtual people all methods are refitted, so these are left
    out and lifts stand for them, which are made in the same way.
    """

    train: LabelledPeople
    seed: int = 0
    heads: Sequence[str] = ()
    fitting_sets: int = 6000
    is_virtual: bool = False

    def names(self) -> list[str]:
        """Return all names: baselines, lifts, heads, whitened ones where there are enough faces for that."""
        names = [*BASELINES, *(IN_TORCH if find_spec("torch") else ())]
        if not self.whitens:
            names = [name for name in names if "+W" not in name]
        names += [name for name, recipe in RECIPES.items() if recipe.fits(self.train.dim)]
        for head in self.head_names():
            names.append(head)
            if load_head(head).dim <= min(WHITEN_UP_TO, len(self.train.descriptors) // 8):
                names.append(f"{head} +W after")
        return names

    def head_names(self) -> list[str]:
        """Return the heads that take these descriptors."""
        heads = [*(() if self.is_virtual else shipped_names()), *self.heads]
        return [head for head in heads if load_head(head).element_dim == self.train.dim]

    @property
    def whitens(self) -> bool:
        """Whether there are enough descriptors to fit a whitening on."""
        return len(self.train.descriptors) > self.train.dim

    def chosen(self, given: Sequence[str] = ()) -> list[str]:
        """Return the given names and heads, all names by default; an unknown one is an error."""
        valid = self.names()
        for head in self.heads:
            self._fits(load_head(head))
        for name in given:
            if name not in valid:
                base = name.removesuffix(" +W after")
                if base in shipped_names() or Path(base).suffix == ".safetensors":
                    self._fits(load_head(base))
                if name in BASELINES | IN_TORCH and not self.whitens:
                    fit_whitening(self.train.descriptors)  # says how many are missing
                raise choice_error("method", name, valid)
        return list(dict.fromkeys([*given, *self.heads])) if given else self.names()

    def chosen_heads(self, given: Sequence[str] = ()) -> list[str]:
        """Return the given heads: of one face, the baselines are the descriptor itself."""
        heads = {*RECIPES, *self.head_names()}
        return [name for name in self.chosen(given) if name in heads]

    def make(self, name: str) -> Method:
        """Return a method, its (w, b) fitted to how it ranks sets of the training people."""
        aggregator = self.aggregator(name)
        logistic = self.fitted_logistic(SetVectors(aggregator))
        return Method(name, aggregator, logistic, _note(name, aggregator))

    @cached_property
    def whitening(self) -> Whitening:
        """Whitening of single descriptors."""
        return fit_whitening(self.train.descriptors)

    def elements(self, whitened: bool = False, bits: int = 32) -> EveryElement:
        """Return every element kept, as it is or whitened, at so many bits."""
        return EveryElement(bits, self.whitening if whitened else unit)

    def element_logistic(self, whitened: bool = False, bits: int = 32) -> Logistic:
        """Return the (w, b) fitted to every element kept in that way."""
        return self.fitted_logistic(self.elements(whitened, bits))

    def fitted_logistic(self, kept: Representation) -> Logistic:
        """Return the (w, b) that ranks sets of the training people best."""
        return best_logistic(kept, self._fitting)

    @cached_property
    def _fitting(self) -> StressTest:
        world = stress_world(
            self.train.descriptors,
            with_distractors(self.train.labels, self.seed, DISTRACTORS),  # where all are known
            sets=self.fitting_sets,
            queries=80,
            repeats=2,
            seed=self.seed + 1,
        )
        return StressTest(world)

    def aggregator(self, name: str) -> Aggregator:
        """Return what makes the set vectors of a method, its score not fitted."""
        dim = self.train.dim
        if name == "mean":
            return Mean(dim)
        if name == "mean 8 bit":
            return Mean(dim, bits=8)
        if name == "mean +W":
            return Whitened(Mean(dim), self.whitening, "before")
        if name == "memory":
            return _in_torch(name, dim)
        if name in RECIPES:
            return SetNet(fit_head(RECIPES[name], self.train.descriptors, self.train.labels))
        base = name.removesuffix(" +W after")
        inner: Aggregator
        if base == "mean":
            inner = Mean(dim)
        elif base == "gm signed":
            inner = _in_torch(base, dim)
        else:
            inner = load_head(base)
            self._fits(inner)
        if base == name:
            return inner
        return Whitened(inner, fit_whitening(self._set_vectors(inner)), "after")

    def _set_vectors(self, inner: Aggregator) -> NDArray[np.float32]:
        """Return set vectors of random sets of training faces."""
        rng = np.random.default_rng(self.seed)
        counts = rng.integers(1, 6, size=max(4000, 3 * inner.dim))
        rows = self.train.descriptors[rng.integers(len(self.train.descriptors), size=int(counts.sum()))]
        return unit(inner.pool(rows, counts))

    def _fits(self, head: Aggregator) -> None:
        if head.element_dim not in (None, self.train.dim):
            raise InvalidInputError(
                f"head {head.name!r} takes {head.element_dim}-D descriptors, these are {self.train.dim}-D: "
                "leave it out, or describe the photos with the descriptor it was made for"
            )


def _in_torch(name: str, dim: int) -> Aggregator:
    """Return a baseline that runs in torch: it has nothing to train."""
    from setnet.train import NetworkAggregator, SetNetwork
    from setnet.train.aggregators import GeneralisedMean
    from setnet.train.backbones import Descriptors
    from setnet.train.network import make_aggregator

    backbone = Descriptors(dim)
    if name == "gm signed":
        mean = GeneralisedMean(dim, p=PAPER_P, signed=True)
        return NetworkAggregator(SetNetwork(backbone, mean), f"gm-{PAPER_P:g}")
    return NetworkAggregator(SetNetwork(backbone, make_aggregator(name, backbone)), name)


def _note(name: str, aggregator: Aggregator) -> str:
    """Return what a method is, in words."""
    inner = aggregator.inner if isinstance(aggregator, Whitened) else aggregator
    exponents = getattr(inner, "exponents", [])
    learned = f"; p from {min(exponents):.2f} to {max(exponents):.2f}" if len(exponents) > 1 else ""
    if name in RECIPES:
        return f"{RECIPES[name].summary}, refitted"
    return ((BASELINES | IN_TORCH).get(name) or _head_note(name)) + learned


def _head_note(name: str) -> str:
    """Return which head it is, by its fingerprint: a retrained head may have the same name."""
    head = name.removesuffix(" +W after")
    return f"head {fingerprint(head_path(head) if head in shipped_names() else Path(head))}"
