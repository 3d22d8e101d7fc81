"""MUVERA's fixed dimensional encodings (Dhulipala et al., 2024): one mean per hash bucket."""

from __future__ import annotations

import torch
from torch import Tensor

from setnet.learn.models.aggregators.aggregator_module import AggregatorModule
from setnet.learn.models.aggregators.ragged import ragged_sum, set_numbers, unit


class Muvera(AggregatorModule):
    """An untrained comparison: 2^planes random buckets, `repeats` times, then a random projection.

    A stored set keeps the mean of its elements in each bucket, and an empty bucket takes the element whose
    hash is nearest. A query face fills its own bucket only, so a single-element set is *not* its query
    vector here. A query meets one of the B buckets' means, so similarities shrink by the root of B while the
    noise of the projection, 1 / sqrt(dim), stays: at 128 dimensions few buckets are best.
    """

    hyperplanes: Tensor
    projection: Tensor
    codes: Tensor

    def __init__(self, element_dim: int, dim: int, planes: int = 1, repeats: int = 4, seed: int = 0) -> None:
        super().__init__(element_dim, dim)
        self.planes, self.repeats = planes, repeats
        generator = torch.Generator().manual_seed(seed)
        buckets = 2**planes
        full = repeats * buckets * element_dim
        signs = torch.randint(0, 2, (full, dim), generator=generator).float() * 2 - 1
        self.register_buffer("hyperplanes", torch.randn(repeats, element_dim, planes, generator=generator))
        self.register_buffer("projection", signs / dim**0.5)
        bits = torch.arange(buckets)[:, None] >> torch.arange(planes)[None, :]
        self.register_buffer("codes", (bits & 1).bool())

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return the unit document encodings of the sets."""
        numbers = set_numbers(counts)
        blocks = []
        for plane in self.hyperplanes:
            distance = self._distances(elements, plane)  # (n, buckets) in bits
            own = (distance == 0).to(elements.dtype)
            sums = ragged_sum(own[:, :, None] * elements[:, None, :], counts)
            sizes = ragged_sum(own, counts)
            best = torch.full_like(sizes, torch.inf).scatter_reduce(
                0, numbers[:, None].expand_as(distance), distance, "amin"
            )
            near = (distance == best[numbers]).to(elements.dtype)
            fill = ragged_sum(near[:, :, None] * elements[:, None, :], counts)
            fill = fill / ragged_sum(near, counts).clamp_min(1)[:, :, None]
            mean = sums / sizes.clamp_min(1)[:, :, None]
            blocks.append(torch.where(sizes[:, :, None] > 0, mean, fill).flatten(1))
        return unit(torch.cat(blocks, 1) @ self.projection)

    def describe(self, elements: Tensor) -> Tensor:
        """Return the unit query encodings of single faces."""
        blocks = [
            (
                (self._distances(elements, plane) == 0).to(elements.dtype)[:, :, None] * elements[:, None, :]
            ).flatten(1)
            for plane in self.hyperplanes
        ]
        return unit(torch.cat(blocks, 1) @ self.projection)

    def _distances(self, elements: Tensor, plane: Tensor) -> Tensor:
        bits = (elements @ plane.to(elements.dtype)) > 0
        return (bits[:, None, :] != self.codes[None]).sum(2).to(elements.dtype)
