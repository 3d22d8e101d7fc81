"""Steps per second of training beside those of the bare network on one batch in memory.

    python benchmarks/training.py [--preset tiny] [--steps 30] [--workers 1]

The bare network computes the loss of the same batch again and again. Training draws, augments and loads other
faces for every step from crops in memory, in worker processes. Both run in turns, so that a busy machine slows
both; run it on a quiet one. A GPU was not tried.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from setnet.train import FaceArray, load_settings, new_backbone, new_network
from setnet.train.loop import BatchLoader, ProcessGroup, make_optimiser
from setnet.train.training import load_set_batch, set_step_loss


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--steps", type=int, default=30)
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
    first, seconds = loaded(0), {"bare": 0.0, "training": 0.0}
    for step in range(1, given.steps + 1):
        for name in seconds:
            began = time.perf_counter()
            batch = first if name == "bare" else loaded(step)
            optimiser.zero_grad(set_to_none=True)
            set_step_loss(network, batch, settings.sets).backward()
            optimiser.step()
            seconds[name] += (time.perf_counter() - began) * (step > 3)  # the first steps prepare memory
    rates = {name: (given.steps - 3) / spent for name, spent in seconds.items()}
    share = 100 * rates["training"] / rates["bare"]
    print(
        f"{given.preset}: bare network {rates['bare']:.2f} steps/s, training {rates['training']:.2f}: {share:.0f} %"
    )


if __name__ == "__main__":
    main()
