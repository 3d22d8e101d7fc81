"""Trains the heads that come with the package, on descriptors of training people.

Two shapes. *Lift*: x = unit((x - mean) A), A from a shrunk linear discriminant analysis; all products x_i x_j
and, with a smaller share, x itself are summed, projected and rotated by random orthogonal blocks, one bit per
dimension. *Vlad*: the paper's NetVLAD and fully connected layer, in float. Gradient training draws virtual
people who stand where real training people stand: a few hundred real people with two photos or more are
learnt by heart within a hundred steps.

The loss is ranking-minded: each query against its own set and all others of the batch, softplus of the
log-sum-exp of how far the others score above it. `setnet.evaluate.shipping` calibrates, judges and writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import eigh
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from setnet.errors import TrainingError
from setnet.sets.head import Head
from setnet.sets.layers import Affine, Blocks, Input, NetVLAD, Pairs, Product
from setnet.sets.logistic import SET_LOGISTIC
from setnet.sets.virtual import Crowd, VirtualPeople

__all__ = ["RECIPES", "Lift", "Recipe", "TrainingPeople", "Vlad", "train_head"]

SIDE = 64  # of the blocks that rotate

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Recipe:
    """How a head is made; chosen on a division of the training half, never on the test half."""

    name: str
    shape: str
    dim: int
    bits: int
    summary: str
    steps: int = 0
    sets_per_batch: int = 192
    linear_share: float = 0.15
    power: float = 2.0
    shrink: float = 0.7
    rate: float = 0.001
    seed: int = 0


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("sface-512", "lift", 4096, 1, "degree-2 lift, 4096 dimensions at one bit: 512 bytes"),
        Recipe("sface-128", "lift", 1024, 1, "degree-2 lift, 1024 dimensions at one bit: 128 bytes"),
        Recipe("sface-128d", "vlad", 128, 32, "NetVLAD and a fully connected layer, 128 floats: 512 bytes"),
    )
}


class TrainingPeople:
    """Virtual people around real ones: each stands at a draw of where a real person's centre may be.

    Drawn from the between-person covariance alone they would lack look-alikes; so a real person's photos fix
    the centre as far as they can (its posterior given them) and the covariances fill in the rest.
    """

    SHRINK = 0.2  # of either covariance towards a multiple of the identity: few people, many dimensions
    SPREADS = (0.15, 0.25)  # of quality, over people and over faces

    def __init__(self, descriptors: Floats, labels: NDArray[np.str_], seed: int) -> None:
        _, owner, photos = np.unique(labels, return_inverse=True, return_counts=True)
        fitted = VirtualPeople.fit(descriptors, owner)
        self.rng = np.random.default_rng(seed)
        rows = descriptors / np.linalg.norm(descriptors, axis=1, keepdims=True)
        self.faces = rows.astype(np.float32)
        centres = np.zeros((len(photos), rows.shape[1]))
        np.add.at(centres, owner, rows)
        centres /= photos[:, None]
        self.mean = centres.mean(axis=0)
        self.moments = (fitted.between.T @ fitted.between, fitted.within.T @ fitted.within)
        between, within = (shrunk(covariance, self.SHRINK) for covariance in self.moments)
        self.model = replace(
            fitted,
            between=_root(between),
            within=_root(within),
            person_spread=self.SPREADS[0],
            face_spread=self.SPREADS[1],
        )
        self.centres, self.doubt = centres.copy(), np.empty((len(photos), *between.shape), np.float32)
        for count in np.unique(np.minimum(photos, 5)):
            who = np.minimum(photos, 5) == count
            gain = between @ np.linalg.inv(between + within / count)
            self.centres[who] = self.mean + (centres[who] - self.mean) @ gain.T
            self.doubt[who] = _root(between - gain @ between)

    def batch(self, sets: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return elements, a query of each element's person, and which set each belongs to; nobody twice."""
        counts = self.rng.integers(2, 6, sets)
        total = int(counts.sum())
        if total > len(self.centres):
            raise TrainingError(
                f"{total} people wanted in a batch, {len(self.centres)} there: take fewer sets"
            )
        who = self.rng.permutation(len(self.centres))[:total]
        drawn = self.rng.standard_normal((total, 1, self.centres.shape[1])).astype(np.float32)
        centres = self.centres[who] + (drawn @ self.doubt[who])[:, 0]
        spread = np.exp(self.model.person_spread * self.rng.standard_normal(total))
        crowd = Crowd(centres.astype(np.float32), spread.astype(np.float32))
        faces = self.model.faces(self.rng, crowd, np.tile(np.arange(total), 2))
        owner = torch.from_numpy(np.repeat(np.arange(sets), counts))
        return torch.from_numpy(faces[:total]), torch.from_numpy(faces[total:]), owner


class Lift(nn.Module):
    """The exact degree-2 lift with a linear share, projected and rotated, for one-bit codes.

    The projection of all De (De + 1) / 2 products and De plain dimensions has orthonormal columns: strangers'
    similarity then has the least variance that D dimensions allow, 1 / D. (Random products of projections
    come to 1 / D + 2 / De^2, half as much again at 4096.)
    """

    def __init__(self, people: TrainingPeople, recipe: Recipe) -> None:
        super().__init__()
        rng = np.random.default_rng(recipe.seed)
        inner, dim = len(people.mean), recipe.dim
        self.mean = torch.tensor(people.mean, dtype=torch.float32)
        self.prepare = nn.Parameter(torch.from_numpy(_discriminant(*people.moments, recipe)))
        self.share = recipe.linear_share
        lifted = inner * (inner + 1) // 2 + inner
        groups = lifted // SIDE
        if groups * SIDE != lifted or dim % SIDE:
            raise TrainingError(f"a lift of {inner} to {dim} dimensions: both must divide into {SIDE}")
        self.mix = [_orthogonal(rng, groups, SIDE, SIDE), _orthogonal(rng, SIDE, groups, dim // SIDE)]
        with torch.no_grad():
            self.squares = (self._prepared(torch.from_numpy(people.faces)) ** 2).mean(0)
        self.dim, self.coded = dim, True

    def _prepared(self, faces: Tensor) -> Tensor:
        return normalize((faces - self.mean) @ self.prepare, dim=1)

    def lift(self, faces: Tensor) -> Tensor:
        """Return each face's contribution, before rotation: squares, shifted products, plain dimensions."""
        x = self._prepared(faces)
        inner = x.shape[1]
        products = [x * x - self.squares]
        for shift in range(1, inner // 2 + 1):
            count = inner if 2 * shift < inner else inner // 2
            products.append(math.sqrt(2.0) * x[:, :count] * x.roll(-shift, 1)[:, :count])
        lifted = normalize(torch.cat(products, 1), dim=1)
        return torch.cat([lifted * math.sqrt(1 - self.share), x * math.sqrt(self.share)], 1)

    def finish(self, sums: Tensor) -> Tensor:
        """Return projected and rotated unit vectors."""
        for blocks in self.mix:
            groups, side, _ = blocks.shape
            sums = torch.einsum("ngi,gij->njg", sums.reshape(len(sums), groups, side), blocks).flatten(1)
        return normalize(sums, dim=1)

    def head(self, recipe: Recipe, about: dict[str, Any]) -> Head:
        """Return the run-time head."""
        inner = len(self.mean)
        return Head(
            name=recipe.name,
            element_dim=inner,
            bits=recipe.bits,
            logistic=SET_LOGISTIC,
            branches=(
                Pairs(_array(self.squares), share=math.sqrt(1 - self.share)),
                Product((np.eye(inner, dtype=np.float32),), share=math.sqrt(self.share)),
            ),
            input=Input(_array(self.mean), _array(self.prepare)),
            output=tuple(Blocks(_array(blocks)) for blocks in self.mix),
            descriptor="sface",
            about=about,
        )


class Vlad(nn.Module):
    """The paper's shape, started as centred mean pooling: assignments all but even, every block the same."""

    CLUSTERS = 8

    def __init__(self, people: TrainingPeople, recipe: Recipe) -> None:
        super().__init__()
        rng = np.random.default_rng(recipe.seed)
        mean = people.mean
        inner, k = len(mean), self.CLUSTERS
        start = torch.from_numpy(rng.standard_normal((inner, k)).astype(np.float32))
        centre = torch.tensor(mean, dtype=torch.float32)
        self.a = nn.Parameter(start)
        self.b = nn.Parameter(torch.zeros(k))
        self.c = nn.Parameter(centre.repeat(k, 1))
        self.reduce = nn.Parameter(torch.eye(inner, recipe.dim).repeat(k, 1))
        self.dim, self.coded = recipe.dim, False

    def lift(self, faces: Tensor) -> Tensor:
        """Return each face's normalised residuals (equation 1 with the paper's normalisation)."""
        assignment = torch.softmax(faces @ self.a + self.b, dim=1)
        return normalize((assignment[:, :, None] * (faces[:, None] - self.c)).flatten(1), dim=1)

    def finish(self, sums: Tensor) -> Tensor:
        """Return reduced unit vectors."""
        return normalize(normalize(sums, dim=1) @ self.reduce, dim=1)

    def head(self, recipe: Recipe, about: dict[str, Any]) -> Head:
        """Return the run-time head."""
        return Head(
            name=recipe.name,
            element_dim=len(self.a),
            bits=recipe.bits,
            logistic=SET_LOGISTIC,
            branches=(NetVLAD(_array(self.a), _array(self.b), _array(self.c)),),
            output=(Affine(_array(self.reduce)),),
            descriptor="sface",
            about=about,
        )


def train_head(
    recipe: Recipe,
    descriptors: Floats,
    labels: NDArray[np.str_],
    report: Callable[[str], None] = lambda line: None,
) -> Head:
    """Train a head on labelled descriptors; its (w, b) is still to be calibrated."""
    people = TrainingPeople(descriptors, labels, recipe.seed)
    torch.manual_seed(recipe.seed)
    net: Lift | Vlad = (Lift if recipe.shape == "lift" else Vlad)(people, recipe)
    optimiser = torch.optim.Adam(net.parameters(), lr=recipe.rate, betas=(0.9, 0.99))
    recent: list[float] = []
    for step in range(recipe.steps):
        for group in optimiser.param_groups:
            group["lr"] = (
                recipe.rate * min(1.0, (step + 1) / 20) * (1 + math.cos(math.pi * step / recipe.steps)) / 2
            )
        loss = _loss(net, *people.batch(recipe.sets_per_batch), recipe.sets_per_batch)
        if not torch.isfinite(loss):
            raise TrainingError(f"{recipe.name}: the loss is {loss.item()} at step {step}; lower the rate")
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        recent.append(loss.item())
        if (step + 1) % 50 == 0:
            report(f"{recipe.name} step {step + 1}/{recipe.steps} loss {np.mean(recent[-50:]):.4f}")
    about = {
        "summary": recipe.summary,
        "trained_on": f"{len(np.unique(labels))} people, {len(labels)} faces, as virtual people around them",
        "steps": recipe.steps,
        "sets_per_batch": recipe.sets_per_batch,
        "seed": recipe.seed,
        "final_loss": round(float(np.mean(recent[-50:])), 4) if recent else None,
    }
    return net.head(recipe, about)


def _loss(net: Lift | Vlad, faces: Tensor, queries: Tensor, owner: Tensor, sets: int) -> Tensor:
    """Return the mean over queries of softplus(log 8 sum exp((s_other - s_own) / tau)).

    tau is about the noise of a D-dimensional similarity; the factor 8 stands for the sets not in the batch.
    """
    lifted = net.lift(faces)
    vectors = net.finish(torch.zeros(sets, lifted.shape[1]).index_add(0, owner, lifted))
    if net.coded:  # straight through: the forward pass sees the code, the gradient the vector
        vectors = vectors + (torch.sign(vectors) / math.sqrt(net.dim) - vectors).detach()
    similarity = net.finish(net.lift(queries)) @ vectors.T
    own = similarity.gather(1, owner[:, None])
    others = ((similarity - own) * (math.sqrt(net.dim) / 1.3)).scatter(1, owner[:, None], -torch.inf)
    return softplus(torch.logsumexp(others, 1) + math.log(8.0)).mean()


def shrunk(covariance: NDArray[np.floating], share: float) -> Doubles:
    """Return the covariance moved by ``share`` towards a multiple of the identity of the same trace."""
    level = np.trace(covariance) / len(covariance)
    return np.asarray((1 - share) * covariance.astype(np.float64) + share * level * np.eye(len(covariance)))


def _discriminant(between: Floats, within: Floats, recipe: Recipe) -> Floats:
    """Return the linear discriminant basis, each direction scaled by reliability to ``recipe.power``.

    Reliability is the share of a direction's variance that lies between people. In so isotropic a space a
    strong shrinkage is needed; directions that repeat from photo to photo then weigh a little more.
    """
    between_, within_ = shrunk(between, recipe.shrink), shrunk(within, recipe.shrink)
    values, axes = eigh(between_, between_ + within_)
    scaled = axes * (values / values.mean()) ** recipe.power
    return np.asarray(scaled / np.linalg.norm(scaled, axis=0).mean(), dtype=np.float32)


def _orthogonal(rng: np.random.Generator, groups: int, rows: int, columns: int) -> Tensor:
    """Return random blocks whose columns are orthonormal; rounded as they will be stored."""
    blocks = [np.linalg.qr(rng.standard_normal((rows, columns)))[0] for _ in range(groups)]
    return torch.from_numpy(np.array(blocks).astype(np.float16).astype(np.float32))


def _root(covariance: Doubles) -> Floats:
    values, axes = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T, dtype=np.float32)


def _array(tensor: Tensor) -> Floats:
    return np.asarray(tensor.detach().numpy(), dtype=np.float32)
