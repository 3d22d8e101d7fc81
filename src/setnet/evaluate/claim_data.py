"""What the paper's claim is tried on: pictures of faces and of characters, and what networks make of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from setnet.evaluate.orthogonality import gram_difference, identity_descriptors
from setnet.evaluate.people import half_of
from setnet.evaluate.ranking_calibration import best_logistic
from setnet.evaluate.representations import set_vectors, vector_similarities
from setnet.evaluate.stress_trial import (
    PairSimilarities,
    Representation,
    StressTest,
    StressWorld,
    measure_ranking,
    stress_world,
)
from setnet.heads import Aggregator
from setnet.train import FaceArray, NetworkAggregator, SetNetwork, TrainingSettings, new_backbone
from setnet.train.faces import FaceSource, align_crops
from setnet.train.glyphs import Glyphs, GlyphSource, load_glyphs
from setnet.train.stages import Variant, whiten
from setnet.train.training import compute_elements

TRAINED, VALIDATED = 3000, 500  # characters; the others are tested
HELD_OUT = 100  # people of LFW's training half that scores are calibrated on
HELD_OUT_TYPEFACES = 0.15  # share of the families
REPEATS = 2  # query pictures of a person; errors are over people, so that few will do
MEASURED = 12  # pictures of a character that calibration and tests use, at most


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
        The sources of the tests by name; the main one is "".
    sizes
        (labelled identities, sets) of a test world, the largest first.
    calibration
        The same of the calibration world.
    worlds
        How many test worlds there should be: the more, the smaller they are.
    facts
        What the page says about the data.
    """

    elements: str
    pretrain: FaceSource
    sets: FaceSource
    calibrate: FaceSource
    tests: Mapping[str, FaceSource]
    sizes: Sequence[tuple[int, int]]
    calibration: tuple[int, int]
    worlds: int
    facts: Mapping[str, object]


def faces_domain(photos: Path, crops: Path, settings: TrainingSettings) -> Domain:
    """Return LFW: one half of the training people pre-trains, the other trains sets; others are tested."""
    cut = align_crops(photos, settings.augment.short_side, crops)
    spec = new_backbone(settings).spec
    assert spec is not None
    _, owner, number = np.unique(cut.labels, return_inverse=True, return_counts=True)
    train, single = half_of(cut.labels, "train"), number[owner] == 1
    rng = np.random.default_rng(0)
    ours = np.unique(owner[train])
    held = rng.choice(
        ours[number[ours] >= 3], min(HELD_OUT, int((number[ours] >= 3).sum()) // 4), replace=False
    )
    learned = rng.permutation(np.setdiff1d(ours[number[ours] >= 2], held))
    first, second = np.isin(owner, learned[::2]), np.isin(owner, learned[1::2])
    groups = (first, second, train & (single | np.isin(owner, held)), half_of(cut.labels, "test"))
    made = [
        FaceArray(cut.pixels[rows], owner[rows].astype(np.int64), spec, settings.augment, "crops")
        for rows in groups
    ]
    facts = {"identities": [source.people for source in made], "pictures": [int(g.sum()) for g in groups]}
    sizes = ((200, 2_000), (100, 1_000), (60, 500), (40, 300), (25, 150))
    return Domain("faces", made[0], made[1], made[2], {"": made[3]}, sizes, (100, 500), 12, facts)


def glyphs_domain(folder: Path, settings: TrainingSettings) -> Domain:
    """Return characters: 3,000 train, 500 calibrate, the rest are tested; some typefaces are held out."""
    drawn = load_glyphs(folder, settings.augment.short_side)
    spec = new_backbone(settings).spec
    assert spec is not None
    order = np.random.default_rng(0).permutation(int(drawn.characters.max()) + 1)
    part = np.empty(len(order), np.int64)  # of each character: 0 train, 1 calibrate, 2 test
    part[order] = np.repeat([0, 1, 2], [TRAINED, VALIDATED, len(order) - TRAINED - VALIDATED])
    other = _held_out(drawn)[drawn.typefaces]
    of = part[drawn.characters]

    def source(chosen: NDArray[np.bool_]) -> GlyphSource:
        return GlyphSource(drawn, np.flatnonzero(chosen), spec, settings.augment)

    train = source((of == 0) & ~other)
    calibrate, test = (source(_some((of == p) & ~other, drawn.characters)) for p in (1, 2))
    tests = {"": test, "held-out typefaces": source(_some((of == 2) & other, drawn.characters))}
    labelled = len(np.unique(test.labels)) * 7 // 10
    facts = {
        "identities": [train.people, calibrate.people, test.people],
        "pictures": [len(one.labels) for one in (train, calibrate, test)],
        "typefaces": len(drawn.names),
        "held_out": [drawn.names[i] for i in np.flatnonzero(_held_out(drawn))],
        "sha256": drawn.checksum,
    }
    return Domain("characters", train, train, calibrate, tests, ((labelled, 24_000),), (400, 6_000), 3, facts)


def _some(chosen: NDArray[np.bool_], characters: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return `chosen` with no more than `MEASURED` random pictures of a character."""
    rows = np.random.default_rng(2).permutation(np.flatnonzero(chosen))
    rows = rows[np.argsort(characters[rows], kind="stable")]
    first = np.flatnonzero(np.diff(characters[rows], prepend=-1))
    number = np.arange(len(rows)) - np.repeat(first, np.diff(np.append(first, len(rows))))
    kept = np.zeros_like(chosen)
    kept[rows[number < MEASURED]] = True
    return kept


def _held_out(drawn: Glyphs) -> NDArray[np.bool_]:
    """Return which typefaces no network is trained on: whole families, so that no sister tells of them."""
    families = sorted(set(drawn.families))
    chosen = np.random.default_rng(1).permutation(families)[
        : max(1, round(HELD_OUT_TYPEFACES * len(families)))
    ]
    return np.isin(drawn.families, chosen)


def test_world(source: FaceSource, labelled: int, sets: int, number: int) -> StressWorld:
    """Return the world of one draw of labelled identities; its descriptors are still to come.

    People of one picture are the distractors where there are any, else all who are not labelled.
    """
    owner = source.labels
    people, pictures = np.unique(owner, return_counts=True)
    several = people[pictures >= 3]
    shuffled = np.random.default_rng(1).permutation(several)[number * labelled : (number + 1) * labelled]
    if len(shuffled) < labelled:  # too few for worlds that share nobody
        shuffled = np.random.default_rng((1, number)).permutation(several)[:labelled]
    known = np.isin(owner, shuffled)
    alone = np.isin(owner, people[pictures == 1])
    keep = np.flatnonzero(known | (alone if alone.any() else True))
    labels = np.where(known, owner.astype(np.str_), "")[keep]
    nothing = np.zeros((len(keep), 1), np.float32)
    world = stress_world(nothing, labels, sets=sets, queries=100, repeats=REPEATS, seed=number)
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
    elif variant.aggregator not in ("memory", "muvera"):
        yield f"{variant.name} + W", "after"


def whitened(
    network: SetNetwork, pooled: CachedPooling, place: str | None, size: int, described: Described
) -> CachedPooling:
    """Give `network` the whitening of a row; return how its sets are kept."""
    network.before = network.after = None
    if place is not None:
        whiten(network, *described.sample, (size,), place)
    return CachedPooling(network) if place == "before" else pooled


def validation_quality(kept: Representation, described: Described) -> float:
    """Return the nDCG@10 of validation identities, calibrated on another draw of them: mean over sizes."""
    fitted, judged = described.validation
    logistic = best_logistic(kept, fitted)
    return float(np.mean([*measure_ranking(kept, [judged], logistic).values.values()]))


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

    def _elements(self, source: FaceSource, picks: NDArray[np.int64]) -> torch.Tensor:
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
        return {name: self._filled(self._domain.tests[name], some) for name, some in self._tests.items()}

    def _filled(self, source: FaceSource, tests: Sequence[StressTest]) -> list[StressTest]:
        """Return tests with the elements of the pictures they use (zeros for the others)."""
        worlds = [test.world for test in tests]
        rows = np.unique(np.concatenate([np.append(w.faces.ravel(), w.examples.ravel()) for w in worlds]))
        some = self._elements(source, rows).numpy()
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
