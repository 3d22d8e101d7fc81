"""Recipes of heads that are computed in closed form from labelled descriptors, as those of the package are.

A head is a *lift*: products of pairs of discriminant directions and, with a smaller share, the directions
themselves are summed, rotated, and stored at one bit per dimension; the directions come from a strongly
shrunk linear discriminant analysis. Heads trained by gradient are made by `setnet train sets` and `setnet
train export`.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from setnet.errors import TrainingError
from setnet.heads import Head
from setnet.heads.layers import Blocks, Input, Product
from setnet.heads.logistic import SET_LOGISTIC
from setnet.train.simulated import VirtualPeople

BLOCK_SIDE = 64  # of the blocks that rotate a lift

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Recipe:
    """How a head is made; chosen on a division of the training half, never on the test half."""

    name: str
    dim: int
    bits: int
    summary: str
    linear_share: float = 0.3
    shrink: float = 0.7
    seed: int = 0

    def fits(self, element_dim: int) -> bool:
        """Whether so many products and directions can be formed of descriptors of a dimension."""
        return self.dim <= element_dim * (element_dim + 1) // 2


RECIPES = {  # of 128 and of 512 bytes
    recipe.name: recipe
    for recipe in (
        Recipe("lift-128", 1024, 1, "products of directions, 1024 dimensions at one bit"),
        Recipe("lift-512", 4096, 1, "products of directions, 4096 dimensions at one bit", linear_share=0.15),
    )
}


@dataclass(frozen=True, eq=False)
class _Moments:
    """Mean of the people's centres, covariance between people, covariance within a person."""

    mean: Doubles
    between: Doubles
    within: Floats


def fit_head(recipe: Recipe, descriptors: Floats, labels: NDArray[np.str_], made_for: str = "") -> Head:
    """Return the head of a recipe for labelled descriptors; its (w, b) is still to be calibrated.

    Rows labelled "", of unknown people, are left out. `made_for` names the descriptors.
    """
    descriptors, labels = descriptors[labels != ""], labels[labels != ""]
    about = {
        "summary": recipe.summary,
        "trained_on": f"{len(np.unique(labels))} people, {len(labels)} faces",
        "recipe": asdict(recipe),
    }
    return Head(
        name=recipe.name,
        element_dim=descriptors.shape[1],
        bits=recipe.bits,
        logistic=SET_LOGISTIC,
        descriptor=made_for,
        about=about,
        **_lift(_moments(descriptors, labels), recipe),
    )


def _moments(descriptors: Floats, labels: NDArray[np.str_]) -> _Moments:
    _, owner, photos = np.unique(labels, return_inverse=True, return_counts=True)
    root = VirtualPeople.fit(descriptors, owner).within
    within = root.T @ root
    centres = np.zeros((len(photos), descriptors.shape[1]))
    np.add.at(centres, owner, descriptors / np.linalg.norm(descriptors, axis=1, keepdims=True))
    centres /= photos[:, None]
    # Unlike the fit, this counts people of one photo too; a centre of n photos carries 1 / n of their spread.
    between = np.cov(centres.T) - within * np.mean(1.0 / photos)
    return _Moments(centres.mean(axis=0), between, within)


def _lift(moments: _Moments, recipe: Recipe) -> dict[str, Any]:
    """Return the layers of a degree-2 lift with a linear share, rotated, for one-bit codes.

    The products are those of two different discriminant directions, the most reliable pairs first, as many
    as there is room for beside the plain directions. Being orthogonal to one another, they let non-matches'
    similarity vary as little as D dimensions allow: variance 1 / D, where random products of projections come
    to 1 / D + 2 / De^2. The rotation makes a sum's entries Gaussian, for which a sign loses least.
    """
    rng = np.random.default_rng(recipe.seed)
    axes, reliability = _discriminant(moments, recipe)
    dim = recipe.dim
    axes = axes[:, : dim // 2]  # room for as many products
    inner = axes.shape[1]
    if dim % BLOCK_SIDE or not recipe.fits(inner):
        raise TrainingError(
            f"a lift of {inner} dimensions cannot have {dim}: a multiple of {BLOCK_SIDE} up to "
            f"{inner * (inner + 1) // 2} is wanted"
        )
    first, second = np.triu_indices(inner, 1)
    best = np.argsort(-reliability[first] * reliability[second], kind="stable")[: dim - inner]
    groups = dim // BLOCK_SIDE
    rotations = (_rotations(rng, groups, BLOCK_SIDE), _rotations(rng, BLOCK_SIDE, groups))
    pairs = (np.ascontiguousarray(axes[:, first[best]]), np.ascontiguousarray(axes[:, second[best]]))
    return {
        "input": Input(moments.mean.astype(np.float32)),
        "branches": (
            Product(pairs, share=math.sqrt(1 - recipe.linear_share)),
            Product((axes,), share=math.sqrt(recipe.linear_share)),
        ),
        "output": tuple(Blocks(blocks) for blocks in rotations),
    }


def _discriminant(moments: _Moments, recipe: Recipe) -> tuple[Floats, Doubles]:
    """Return the linear discriminant directions as columns, most reliable first, and their reliability.

    Reliability is the share of a direction's variance that lies between people; a direction is scaled to unit
    variance times its reliability. In so isotropic a space much shrinkage is needed.
    """
    between, within = (_shrink(part, recipe.shrink) for part in (moments.between, moments.within))
    values, axes = eigh(between, between + within)
    values, axes = values[::-1], axes[:, ::-1]
    scaled = axes * (values / values.mean())
    return np.asarray(scaled / np.linalg.norm(scaled, axis=0).mean(), dtype=np.float32), values


def _shrink(covariance: NDArray[np.floating], share: float) -> Doubles:
    """Return the covariance moved by ``share`` towards a multiple of the identity of the same trace."""
    level = np.trace(covariance) / len(covariance)
    return np.asarray((1 - share) * covariance.astype(np.float64) + share * level * np.eye(len(covariance)))


def _rotations(rng: np.random.Generator, groups: int, side: int) -> Floats:
    """Return random rotations, rounded as they will be stored."""
    blocks = [np.linalg.qr(rng.standard_normal((side, side)))[0] for _ in range(groups)]
    return np.array(blocks).astype(np.float16).astype(np.float32)
