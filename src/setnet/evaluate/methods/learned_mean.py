"""The generalised mean with p per dimension (section 5.2), learnt on descriptors of training people."""

from __future__ import annotations

import torch

from setnet.evaluate.data.labelled_people import People
from setnet.learn import (
    Descriptors,
    DescriptorSource,
    GeneralisedMean,
    NetworkAggregator,
    SetNetwork,
    batch_loss,
    set_sizes,
    stream,
)

__all__ = ["learnt_mean"]

STEPS, PEOPLE = 1000, 84
# Of fixed descriptors p moves slowly: at the rates of a network it would stay at 3.
RATE, MOMENTUM = 1.0, 0.9


def learnt_mean(people: People, seed: int = 0, steps: int = STEPS) -> NetworkAggregator:
    """Return the mean as the paper trains it: from p = 3, on sets of two, by the loss of equation 2."""
    source = DescriptorSource(people.descriptors, people.labels)
    backbone = Descriptors(people.dim)
    mean = GeneralisedMean(people.dim, per_dimension=True)
    network = SetNetwork(backbone, mean)
    optimiser = torch.optim.SGD(network.parameters(), lr=RATE, momentum=MOMENTUM)
    number = min(PEOPLE, source.people)
    counts = torch.from_numpy(set_sizes(number, [2], stream(seed, 0)))
    for step in range(steps):
        draw = source.draw(stream(seed, step), number, 2)
        elements = source.load(draw.picks, None)
        loss = batch_loss(network, elements, torch.from_numpy(draw.labels), counts, "logistic")
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        mean.p.data.clamp_(min=1.0)  # nearer to 0 there is no mean any more
    return NetworkAggregator(network, "gm per dim")
