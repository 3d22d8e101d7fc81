"""The generalised mean with p per dimension (section 5.2), learned on descriptors of training people."""

from __future__ import annotations

from setnet.evaluate.people import LabelledPeople
from setnet.train import DescriptorSource, NetworkAggregator, SetNetwork
from setnet.train.aggregators import GeneralisedMean
from setnet.train.backbones import Descriptors
from setnet.train.loop import train_loop
from setnet.train.settings import SetSettings
from setnet.train.training import set_step_loss

STEPS, PEOPLE = 1000, 84
RATE = 1.0  # of fixed descriptors p moves slowly: at the rates of a network it would stay at 3


def learned_mean(people: LabelledPeople, seed: int = 0, steps: int = STEPS) -> NetworkAggregator:
    """Return the mean as the paper trains it: from p = 3, on sets of two, by the loss of equation 2."""
    source = DescriptorSource(people.descriptors, people.labels)
    mean = GeneralisedMean(people.dim, per_dimension=True)
    network = SetNetwork(Descriptors(people.dim), mean)
    schedule = SetSettings(steps, RATE, weight_decay=0.0, drops=(), identities=min(PEOPLE, source.people))
    train_loop(
        "gm per dim",
        network,
        lambda step: set_step_loss(network, source, schedule, seed, step),
        schedule,
        on_step=lambda step, loss: mean.p.data.clamp_(min=1.0),  # nearer to 0 there is no mean any more
    )
    return NetworkAggregator(network, "gm per dim")
