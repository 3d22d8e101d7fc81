"""What the paper's claim is tried on: divided pictures, test worlds, and what networks make of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.orthogonality import gram_difference, identity_descriptors
from setnet.evaluate.published import import_places, split_photos
from setnet.evaluate.representations import set_vectors, vector_similarities
from setnet.evaluate.stress_trial import (
    FACES,
    PairSimilarities,
    StressTest,
    StressWorld,
    stress_world,
)
from setnet.heads import Aggregator
from setnet.train import NetworkAggregator, SetNetwork, TrainingSettings, new_backbone
from setnet.train.faces import FacePhotos
from setnet.train.sources import LabelledSource
from setnet.train.stages import PLACES, Variant, whiten
from setnet.train.training import compute_elements

HELD_OUT = 100  # people of the training half that scores are calibrated on


@dataclass(frozen=True, eq=False)
class Test:
    """Pictures to test on, the elements of a set, the depths of nDCG, and the query pictures of a person."""

    __test__ = False
    source: LabelledSource
    counts: tuple[int, ...] = FACES
    depths: tuple[int, ...] = (10, 30)
    repeats: int = 2  # errors are over people, so that few will do


@dataclass(frozen=True, eq=False)
class Domain:
    """The pictures of a domain, divided.

    Attributes
    ----------
    elements
        What the elements are called: faces, characters.
    pretrain, sets, calibrate
        The sources of pre-training, of set training with whitening, and of calibration.
    tests
        The tests by name; the main one is "".
    size
        (labelled identities, sets) of a test world; 0 labels everybody with two pictures.
    calibration
        The same of the calibration world.
    facts
        What the page says about the data.
    seeds
        How often everything is trained, each time from another start.
    worlds
        How many test worlds, each with other identities where there are enough.
    losses
        Everything is trained with the first; with the others, SetNet and the best baseline in the first seed.
    others
        Other backbones with their dimensions, for SetNet and the best baseline in the first seed.
    """

    elements: str
    pretrain: LabelledSource
    sets: LabelledSource
    calibrate: LabelledSource
    tests: Mapping[str, Test]
    size: tuple[int, int]
    calibration: tuple[int, int]
    facts: Mapping[str, object]
    seeds: int = 3
    worlds: int = 1
    losses: Sequence[str] = ("contrastive", "logistic")
    others: Sequence[tuple[str, int]] = ()


Rows = NDArray[np.bool_]
FACES_WORLD = 64_000  # sets, as in the paper


def divide_photos(data: Path, split: Path | None = None) -> tuple[list[Path], NDArray[np.int64], list[Rows]]:
    """Return photos, whose each is, and which train, validate and are tested.

    People of one photo cannot train; they are the distractors of validation.
    """
    paths, names, train = split_photos(data, split)
    _, owner = np.unique(names, return_inverse=True)
    people, number = np.unique(owner[train], return_counts=True)
    several = people[number >= 3]
    held = np.random.default_rng(0).choice(several, min(HELD_OUT, len(several) // 4), replace=False)
    validation = train & np.isin(owner, [*held, *people[number == 1]])
    return paths, owner.astype(np.int64), [train & ~validation, validation, ~train]


def folder_domain(
    data: Path, out: Path, settings: TrainingSettings, split: Path | None = None, sets: int = FACES_WORLD
) -> Domain:
    """Return any folder of identities, with the settings' own rates: the paper's networks as they are.

    `split` is a JSON file of the names to ``train`` and to ``test``. Without it VGGFace2's lists decide, or
    the folders ``train`` and ``test``, or LFW's fixed halves where these are its people, else chance.
    """
    paths, owner, parts = divide_photos(data, split)
    spec, places = new_backbone(settings).spec, out / PLACES
    if spec is None:
        raise InvalidInputError("the paper's networks see photos: choose a backbone other than 'descriptors'")
    import_places(data, places)

    def source(rows: Rows) -> FacePhotos:
        files = [paths[row] for row in np.flatnonzero(rows)]
        return FacePhotos(files, owner[rows], spec, settings.augment, str(data), places)

    learned, calibrate, test = sources = [source(rows) for rows in parts]
    facts = {"identities": [one.people for one in sources], "pictures": [len(one.labels) for one in sources]}
    usual = settings.backbone
    networks = [(name, dim) for name in ("resnet50", "senet50") for dim in (128, 256)]
    others = [one for one in networks if one != (usual.name, usual.dim)] if usual.name == "resnet50" else []
    return Domain(
        "faces",
        learned,
        learned,
        calibrate,
        {"": Test(test, repeats=10)},
        (0, sets),
        (0, min(6_000, sets)),
        facts,
        seeds=1,
        losses=(settings.sets.loss,),
        others=others,
    )


def make_world(
    source: LabelledSource, labelled: int, sets: int, number: int, repeats: int = 2, distractors: int = 3
) -> StressWorld:
    """Return the world of one draw of labelled identities; its descriptors are still to come.

    People of one picture are the distractors where there are any, else all who are not labelled.
    """
    owner = source.labels
    people, pictures = np.unique(owner, return_counts=True)
    several = people[pictures >= (3 if labelled else 2)]
    enough = (pictures == 1).sum() >= 20  # distractors; else every third person is one
    labelled = labelled or (len(several) if enough else len(several) * 2 // 3)
    shuffled = np.random.default_rng(1).permutation(several)[number * labelled : (number + 1) * labelled]
    if len(shuffled) < labelled:  # too few for worlds that share nobody
        shuffled = np.random.default_rng((1, number)).permutation(several)[:labelled]
    known = np.isin(owner, shuffled)
    alone = np.isin(owner, people[pictures == 1])
    keep = np.flatnonzero(known | (alone if alone.any() else True))
    labels = np.where(known, owner.astype(np.str_), "")[keep]
    nothing = np.zeros((len(keep), 1), np.float32)
    world = stress_world(
        nothing, labels, sets=sets, queries=100, repeats=repeats, seed=number, distractors=distractors
    )
    return replace(world, faces=keep[world.faces], examples=keep[world.examples])


Floats = NDArray[np.float32]


class CachedPooling:
    """A trained network's set vectors, which whitening after aggregation only maps: pooled once for all."""

    def __init__(self, network: SetNetwork) -> None:
        self._network = network
        self._known: dict[StressTest, tuple[Floats, list[Floats]]] = {}

    def similarities(self, test: StressTest) -> Iterator[PairSimilarities]:
        """Yield the similarities by number of elements, with the whitening that the network has now."""
        after, self._network.after = self._network.after, None
        if test not in self._known:
            plain = NetworkAggregator(self._network, "")
            queries = plain.describe(test.world.descriptors[test.examples])
            self._known[test] = queries, [*set_vectors(plain, test)]
        self._network.after = after
        queries, sets = self._known[test]
        for vectors in sets:
            if after is None:
                yield vector_similarities(queries, vectors)
            else:
                yield vector_similarities(*(after(torch.from_numpy(v)).numpy() for v in (queries, vectors)))


def row_variants(variant: Variant) -> Iterator[tuple[str, str | None]]:
    """Yield a variant's rows: as it is, whitened, and for averages also whitened after aggregation."""
    yield variant.name, None
    if variant.aggregator == "average":
        yield f"{variant.name} + W (W after agg.)", "after"
        yield f"{variant.name} + W", "before"
    elif variant.aggregator not in ("memory", "hashed"):
        yield f"{variant.name} + W", "after"


def whiten_row(
    network: SetNetwork, pooled: CachedPooling, place: str | None, size: int, described: Described
) -> CachedPooling:
    """Give `network` the whitening of a row; return how its sets are kept."""
    network.before = network.after = None
    if place is not None:
        whiten(network, *described.sample, (size,), place)
    return CachedPooling(network) if place == "before" else pooled


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
        device: str = "cpu",
    ) -> None:
        self._device = device
        self._network, self._domain, self._seed = network, domain, seed
        self._validation, self._tests = validation, tests

    @cached_property
    def sample(self) -> tuple[torch.Tensor, NDArray[np.int64]]:
        """Elements of training pictures, and whose they are."""
        drawn = self._domain.sets.sample(np.random.default_rng(self._seed), WHITENED)
        return self._elements(self._domain.sets, drawn.picks), drawn.labels

    def _elements(self, source: LabelledSource, picks: NDArray[np.int64]) -> torch.Tensor:
        made = compute_elements(self._network.to(self._device), source, picks, self._device)
        self._network.cpu()
        return made

    @cached_property
    def validation(self) -> list[StressTest]:
        """The tests of validation identities."""
        return self._filled(self._domain.calibrate, self._validation)

    @cached_property
    def tests(self) -> dict[str, list[StressTest]]:
        """The tests by name."""
        return {
            name: self._filled(self._domain.tests[name].source, some) for name, some in self._tests.items()
        }

    def _filled(self, source: LabelledSource, tests: Sequence[StressTest]) -> list[StressTest]:
        """Return tests with the elements of the pictures they use (zeros for the others)."""
        worlds = [test.world for test in tests]
        rows = np.unique(np.concatenate([np.append(w.faces.ravel(), w.examples.ravel()) for w in worlds]))
        some = self._elements(source, rows).numpy()
        out = np.zeros((len(source.labels), some.shape[1]), dtype=np.float32)
        out[rows] = some
        return [test.with_descriptors(out) for test in tests]

    def orthogonality(self, aggregator: Aggregator | None) -> dict[str, object]:
        """Return G_diff of the tested identities (eq. 4) over that of random directions."""
        world, labels = self.tests[""][0].world, self._domain.tests[""].source.labels
        rows = np.unique(world.faces[:, :2])
        order = rows[np.argsort(labels[rows], kind="stable")]
        groups = np.split(np.arange(len(order)), np.flatnonzero(np.diff(labels[order])) + 1)
        vectors = world.descriptors[order]
        if aggregator is not None:
            vectors = aggregator.describe(vectors)
        identities = identity_descriptors(vectors, groups, np.random.default_rng(0))
        return {"gram": gram_difference(identities) / (len(groups) / np.sqrt(vectors.shape[1]))}
