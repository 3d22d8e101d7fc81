"""Trains the heads that come with the package, on descriptors of training people.

Two shapes. *Lift*: products of pairs of discriminant directions and, with a smaller share, the directions
themselves are summed, rotated, and stored at one bit per dimension; the directions come from a strongly
shrunk linear discriminant analysis. *Vlad*: the paper's NetVLAD and fully connected layer, in float. Gradient
training draws virtual people who stand where real training people stand: a few hundred real people with two
photos or more are learnt by heart within a hundred steps.

The loss is ranking-minded: each query against its own set and all others of the batch, softplus of the
log-sum-exp of how far the others score above it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import eigh
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from setnet.errors import TrainingError
from setnet.learn.data.virtual_people import Crowd, VirtualPeople
from setnet.sets import SET_LOGISTIC, Affine, Blocks, Head, Input, NetVLAD, Product

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
    linear_share: float = 0.3
    power: float = 1.0
    shrink: float = 0.7
    rate: float = 0.001
    seed: int = 0


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "sface-512",
            "lift",
            4096,
            1,
            "products of directions, 4096 dimensions at one bit",
            linear_share=0.15,
        ),
        Recipe("sface-128", "lift", 1024, 1, "products of directions, 1024 dimensions at one bit"),
        Recipe("sface-128d", "vlad", 128, 32, "NetVLAD and a fully connected layer, 128 floats"),
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
        spread = fitted.within.T @ fitted.within
        # unlike the fit, counts people of one photo too; a centre of n photos carries 1 / n of their spread
        self.moments = (np.cov(centres.T) - spread * np.mean(1.0 / photos), spread)
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
    """A degree-2 lift with a linear share, rotated, for one-bit codes.

    The products are those of two different discriminant directions, the most reliable pairs first, as many
    as there is room for beside the plain directions. Being orthogonal to one another, they let strangers'
    similarity vary as little as D dimensions allow: variance 1 / D, where random products of projections come
    to 1 / D + 2 / De^2. The rotation makes a sum's entries Gaussian, for which a sign loses least.
    """

    def __init__(self, people: TrainingPeople, recipe: Recipe) -> None:
        super().__init__()
        rng = np.random.default_rng(recipe.seed)
        axes, reliability = _discriminant(*people.moments, recipe)
        inner, dim = len(axes), recipe.dim
        if dim % SIDE or not inner < dim <= inner + inner * (inner - 1) // 2:
            raise TrainingError(
                f"a lift of {inner} dimensions cannot have {dim}: a multiple of {SIDE} up to "
                f"{inner + inner * (inner - 1) // 2} is wanted"
            )
        first, second = np.triu_indices(inner, 1)
        best = np.argsort(-reliability[first] * reliability[second], kind="stable")[: dim - inner]
        self.mean = torch.tensor(people.mean, dtype=torch.float32)
        self.left, self.right, self.direct = (
            nn.Parameter(torch.from_numpy(np.ascontiguousarray(columns)))
            for columns in (axes[:, first[best]], axes[:, second[best]], axes)
        )
        self.share = recipe.linear_share
        groups = dim // SIDE
        self.mix = [_orthogonal(rng, groups, SIDE), _orthogonal(rng, SIDE, groups)]
        self.dim, self.coded = dim, True

    def lift(self, faces: Tensor) -> Tensor:
        """Return each face's contribution, before rotation: products, then plain directions."""
        x = normalize(faces - self.mean, dim=1)
        products = normalize((x @ self.left) * (x @ self.right), dim=1) * math.sqrt(1 - self.share)
        return torch.cat([products, normalize(x @ self.direct, dim=1) * math.sqrt(self.share)], 1)

    def finish(self, sums: Tensor) -> Tensor:
        """Return rotated unit vectors."""
        for blocks in self.mix:
            groups, side, _ = blocks.shape
            sums = torch.einsum("ngi,gij->njg", sums.reshape(len(sums), groups, side), blocks).flatten(1)
        return normalize(sums, dim=1)

    def head(self, recipe: Recipe, about: dict[str, Any]) -> Head:
        """Return the run-time head."""
        return Head(
            name=recipe.name,
            element_dim=len(self.mean),
            bits=recipe.bits,
            logistic=SET_LOGISTIC,
            branches=(
                Product((_array(self.left), _array(self.right)), share=math.sqrt(1 - self.share)),
                Product((_array(self.direct),), share=math.sqrt(self.share)),
            ),
            input=Input(_array(self.mean)),
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
        start = torch.from_numpy(0.1 * rng.standard_normal((inner, k)).astype(np.float32))
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
        "trained_on": f"{len(np.unique(labels))} people, {len(labels)} faces",
        "recipe": asdict(recipe),
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


def _discriminant(between: Floats, within: Floats, recipe: Recipe) -> tuple[Floats, Doubles]:
    """Return the linear discriminant directions as columns, most reliable first, and their reliability.

    Reliability is the share of a direction's variance that lies between people; a direction is scaled to unit
    variance times its reliability to ``recipe.power``. In so isotropic a space much shrinkage is needed.
    """
    between_, within_ = shrunk(between, recipe.shrink), shrunk(within, recipe.shrink)
    values, axes = eigh(between_, between_ + within_)
    values, axes = values[::-1], axes[:, ::-1]
    scaled = axes * (values / values.mean()) ** recipe.power
    return np.asarray(scaled / np.linalg.norm(scaled, axis=0).mean(), dtype=np.float32), values


def _orthogonal(rng: np.random.Generator, groups: int, side: int) -> Tensor:
    """Return random rotations; rounded as they will be stored."""
    blocks = [np.linalg.qr(rng.standard_normal((side, side)))[0] for _ in range(groups)]
    return torch.from_numpy(np.array(blocks).astype(np.float16).astype(np.float32))


def _root(covariance: Doubles) -> Floats:
    values, axes = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T, dtype=np.float32)


def _array(tensor: Tensor) -> Floats:
    return np.asarray(tensor.detach().numpy(), dtype=np.float32)
