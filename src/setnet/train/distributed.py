"""Training in several processes (`torchrun`): the numbers are those of one process with the whole batch.

Each process runs the backbone on its share of the faces; the elements of all shares are gathered, so that
every query meets every set of the whole batch. Each process computes the whole loss divided by the number of
processes, and gradients are summed: the sum is the gradient of the one loss.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from setnet.errors import InvalidInputError


@dataclass(frozen=True)
class ProcessGroup:
    """How many processes train together and which one this is."""

    rank: int = 0
    number: int = 1

    def share(self, total: int) -> slice:
        """Return the rows of a batch of `total` that are this process's."""
        return slice(self.rank * total // self.number, (self.rank + 1) * total // self.number)

    def gather(self, rows: Tensor, total: int) -> Tensor:
        """Return the rows of all processes in order, differentiably."""
        if self.number == 1:
            return rows
        out: Tensor = _Gather.apply(rows, self.share(total), total)  # type: ignore[no-untyped-call]
        return out

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum over processes, for reporting."""
        if self.number > 1:
            value = value.detach().clone()
            dist.all_reduce(value)
        return value

    def sum_gradients(self, module: nn.Module) -> None:
        """Add up the gradients of all processes, in place."""
        if self.number == 1:
            return
        for parameter in module.parameters():
            if parameter.requires_grad:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                dist.all_reduce(parameter.grad)


def use_device(device: str, threads: int = 0) -> None:
    """Refuse a device that torch does not have here, and set its number of threads unless 0."""
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise InvalidInputError(f"--device {device}: valid are cpu, cuda and cuda:NUMBER")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InvalidInputError("--device cuda: torch sees no GPU here; use --device cpu")
    if threads:
        torch.set_num_threads(threads)


def own_device(device: str) -> str:
    """Return the device of this process: with ``cuda`` and several processes, each has a GPU of its own."""
    return f"cuda:{os.environ['LOCAL_RANK']}" if device == "cuda" and "LOCAL_RANK" in os.environ else device


@contextmanager
def process_group(device: str = "cpu") -> Iterator[ProcessGroup]:
    """Join the processes that `torchrun` started (gloo on CPU, nccl on GPU), or be the only one."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield ProcessGroup()
        return
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield ProcessGroup(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, share: slice, total: int) -> Tensor:
        ctx.share = share
        whole = rows.new_zeros((total, *rows.shape[1:]))
        whole[share] = rows
        dist.all_reduce(whole)  # shares may differ by one row, so no plain all_gather
        return whole

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        whole = gradients[0].contiguous().clone()
        dist.all_reduce(whole)
        return whole[ctx.share], None, None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        out = value.clone()
        dist.all_reduce(out)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        out = gradients[0].contiguous().clone()
        dist.all_reduce(out)
        return out


class _SynchronisedNorm(nn.BatchNorm2d):
    """Batch norm over the faces of all processes (torch's own runs on GPUs only)."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 (torch's name)
        if not self.training:
            return super().forward(input)
        rows = input.new_tensor([input.numel() / input.shape[1]])
        sums = torch.cat([input.sum((0, 2, 3)), rows])
        total: Tensor = _Sum.apply(sums)  # type: ignore[no-untyped-call]
        mean = total[:-1] / total[-1]
        centred = input - mean[None, :, None, None]
        spread: Tensor = _Sum.apply((centred**2).sum((0, 2, 3)))  # type: ignore[no-untyped-call]
        variance = spread / total[-1]
        with torch.no_grad():
            assert self.running_mean is not None
            assert self.running_var is not None
            assert self.num_batches_tracked is not None
            momentum = self.momentum if self.momentum is not None else 0.1
            self.num_batches_tracked += 1
            self.running_mean.lerp_(mean, momentum)
            self.running_var.lerp_(variance * (total[-1] / (total[-1] - 1)), momentum)
        scale = self.weight * torch.rsqrt(variance + self.eps)
        return centred * scale[None, :, None, None] + self.bias[None, :, None, None]


def synchronise_norms(module: nn.Module, group: ProcessGroup) -> None:
    """Make all 2-D batch norms of `module` use the statistics of the whole batch."""
    if group.number > 1:
        for part in module.modules():
            if type(part) is nn.BatchNorm2d:
                part.__class__ = _SynchronisedNorm
