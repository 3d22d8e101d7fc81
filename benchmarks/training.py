"""Steps per second of training beside those of the bare network on one batch in memory.

    python benchmarks/training.py [--preset tiny] [--steps 60] [--workers 1]

The bare network computes the loss of the same batch again and again. Training draws, augments and loads other
faces for every step from crops in memory, in worker processes. Both run by turns, some steps each, so that a busy
machine slows both; the first of each turn do not count, as their batches were loaded before. A GPU was not tried.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
import torch

from setnet.train import FaceArray, load_settings, new_backbone, new_network
from setnet.train.loop import BatchLoader, ProcessGroup, make_optimiser
from setnet.train.training import load_set_batch, set_step_loss

TURN = 20  # steps


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    settings = load_settings(given.preset)
    network = new_network(new_backbone(settings), settings).train()
    spec = network.backbone.spec
    assert spec is not None
    people, side = 2 * settings.sets.identities, settings.augment.short_side
    crops = np.random.default_rng(0).integers(0, 256, (2 * people, side, side, 3), np.uint8)
    source = FaceArray(crops, np.repeat(np.arange(people), 2), spec, settings.augment)
    optimiser = make_optimiser(network, settings.sets)
    loaded = BatchLoader(
        lambda step: load_set_batch(source, settings.sets, 0, step, ProcessGroup()), given.workers
    )
    first, seconds, counted = loaded(0), {"bare": 0.0, "training": 0.0}, 0
    ahead = 2 * given.workers + 1  # batches that are ready when a turn begins
    for turn in range(1, given.steps + 1, TURN):
        for name in seconds:
            for step in range(turn, turn + TURN):
                began = time.perf_counter()
                batch = first if name == "bare" else loaded(step)
                optimiser.zero_grad(set_to_none=True)
                set_step_loss(network, batch, settings.sets).backward()
                optimiser.step()
                seconds[name] += (time.perf_counter() - began) * (step - turn >= ahead)
        counted += TURN - ahead
    rates = {name: counted / spent for name, spent in seconds.items()}
    share = 100 * rates["training"] / rates["bare"]
    load = os.getloadavg()[0]
    print(
        f"{given.preset}: bare network {rates['bare']:.2f} steps/s, training {rates['training']:.2f}: {share:.0f} % "
        f"({torch.get_num_threads()} threads, load {load:.1f})"
    )


if __name__ == "__main__":
    main()
