"""Heads to compare, by name or file: run-time heads, and trained networks that have no run-time form."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from safetensors import SafetensorError, safe_open

from setnet.heads import Aggregator, SetNet


@cache
def load_head(name: str) -> Aggregator:
    """Return a shipped head, a head's file, or the ``network.safetensors`` of a training run.

    The last is for comparisons such as generalised means (``gem``, ``gem-per-dim``); it runs in torch.
    """
    if Path(name).suffix != ".safetensors" or not _is_network(Path(name)):
        return SetNet.load(name)
    from setnet.train import NetworkAggregator, load_network  # imports torch

    return NetworkAggregator(load_network(Path(name)).network, name)


def _is_network(path: Path) -> bool:
    try:
        with safe_open(str(path), framework="numpy") as file:
            return "setnet-training" in (file.metadata() or {})
    except (OSError, SafetensorError):
        return False  # `SetNet.load` says what is wrong with it
