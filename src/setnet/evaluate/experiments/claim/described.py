"""A network's elements of the pictures that whitening, calibration and tests use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from setnet.evaluate.experiments.claim.domains import Domain
from setnet.evaluate.experiments.one_face.orthogonality import gram_difference, identity_descriptors
from setnet.evaluate.methods.stress_measure import StressTest
from setnet.heads import Aggregator
from setnet.train import FaceSource, SetNetwork, elements_of

WHITENED = 10_000  # pictures that whitening and lifts are fitted on, at most
Tests = Mapping[str, Sequence[StressTest]]


class Described:
    """A network's elements, computed when they are first asked for.

    Parameters
    ----------
    validation
        Two tests of validation identities: scores are calibrated in the first, choices judged in the second.
    tests
        The tests by name; like the others they come without descriptors.
    """

    def __init__(
        self,
        network: SetNetwork,
        domain: Domain,
        validation: Sequence[StressTest],
        tests: Tests,
        seed: int,
    ) -> None:
        self._network, self._domain, self._seed = network, domain, seed
        self._validation, self._tests = validation, tests

    @cached_property
    def sample(self) -> tuple[torch.Tensor, NDArray[np.int64]]:
        """Elements of training pictures, and whose they are."""
        drawn = self._domain.sets.sample(np.random.default_rng(self._seed), WHITENED)
        return elements_of(self._network, self._domain.sets, drawn.picks), drawn.labels

    @cached_property
    def validation(self) -> list[StressTest]:
        """The tests of validation identities."""
        return self._filled(self._domain.calibrate, self._validation)

    @cached_property
    def tests(self) -> dict[str, list[StressTest]]:
        """The tests by name."""
        return {name: self._filled(self._domain.tests[name], some) for name, some in self._tests.items()}

    def _filled(self, source: FaceSource, tests: Sequence[StressTest]) -> list[StressTest]:
        """Return tests with the elements of the pictures they use (zeros for the others)."""
        worlds = [test.world for test in tests]
        rows = np.unique(np.concatenate([np.append(w.faces.ravel(), w.examples.ravel()) for w in worlds]))
        some = elements_of(self._network, source, rows).numpy()
        out = np.zeros((len(source.labels), some.shape[1]), dtype=np.float32)
        out[rows] = some
        return [test.described(out) for test in tests]

    def orthogonality(self, aggregator: Aggregator | None) -> dict[str, object]:
        """Return G_diff of the tested identities (eq. 4) over that of random directions."""
        world, labels = self.tests[""][0].world, self._domain.tests[""].labels
        rows = np.unique(world.faces[:, :2])
        order = rows[np.argsort(labels[rows], kind="stable")]
        groups = np.split(np.arange(len(order)), np.flatnonzero(np.diff(labels[order])) + 1)
        vectors = world.descriptors[order]
        if aggregator is not None:
            vectors = aggregator.describe(vectors)
        identities = identity_descriptors(vectors, groups, np.random.default_rng(0))
        return {"gram": gram_difference(identities) / (len(groups) / np.sqrt(vectors.shape[1]))}
