"""What the paper's claim is tried on: pictures of faces and of characters, and what networks make of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.orthogonality import gram_difference, identity_descriptors
from setnet.evaluate.people import Similarities, similarities
from setnet.evaluate.published import import_places, split_photos
from setnet.evaluate.ranking_calibration import best_logistic
from setnet.evaluate.representations import set_vectors, vector_similarities
from setnet.evaluate.stress_trial import (
    FACES,
    PairSimilarities,
    Representation,
    StressTest,
    StressWorld,
    measure_ranking,
    stress_world,
)
from setnet.heads import Aggregator
from setnet.train import NetworkAggregator, SetNetwork, TrainingSettings, new_backbone
from setnet.train.faces import FacePhotos
from setnet.train.glyphs import Glyphs, GlyphSource, load_glyphs
from setnet.train.sface import SFace, frozen_sface
from setnet.train.sources import Features, FeatureSource, LabelledSource, cache_features
from setnet.train.stages import PLACES, Variant, whiten
from setnet.train.training import compute_elements

TRAINED, VALIDATED = 3000, 500  # characters; the others are tested
HELD_OUT = 100  # people of LFW's training half that scores are calibrated on
HELD_OUT_TYPEFACES = 0.15  # share of the families
MEASURED = 12  # pictures of a character that calibration and tests use, at most


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
    is_fixed
        Whether rates and NetVLAD's start are those of the settings, and nothing is chosen.
    is_verified
        Whether a network must tell pairs of elements apart before it trains on sets.
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
    is_fixed: bool = False
    is_verified: bool = False


Rows = NDArray[np.bool_]
VIEWS = 3  # of a training photo: as it is at run time, and augmented
FACES_WORLD = 64_000  # sets, as in the paper


def faces_domain(photos: Path, out: Path, settings: TrainingSettings, copies: Sequence[Path] = ()) -> Domain:
    """Return LFW as the frozen part of SFace sees it, computed once: one half trains, the other is tested.

    `copies` are folders of degraded photos of the same names, which are tested as well.
    """
    paths, owner, (train, validation, test) = _parts(photos)
    frozen, kept = cache(frozen_sface), out / "features"

    def source(chosen: Rows, name: str, views: int = 1, root: Path = photos) -> FeatureSource:
        rows = np.flatnonzero(chosen)
        files = [root / paths[row].relative_to(photos) for row in rows.tolist()]
        labels, places = owner[rows], kept / f"{name}-places.bin"
        if missing := [file for file in files if not file.is_file()]:
            raise InvalidInputError(f"{missing[0]} is missing: degrade all photos of {photos}")

        def faces() -> FacePhotos:  # where the features are, no photo is read
            return FacePhotos(files, labels, SFace.spec, settings.augment, f"{name} faces", places)

        def make(view: int) -> Features:
            file, every = kept / f"{name}-{view}.npy", np.arange(len(rows))
            return cache_features(frozen(), faces, every, file, view)

        return FeatureSource(labels, name, make, views)

    learned, calibrate = source(train, "train", VIEWS), source(validation, "validation")
    tested = source(test, "test")
    tests = {"": Test(tested, repeats=10), "large sets": Test(tested, (10, 20), (10,))}
    tests |= {root.name: Test(source(test, root.name, root=root), depths=(10,)) for root in copies}
    sources = (learned, calibrate, tested)
    facts = {"identities": [one.people for one in sources], "pictures": [len(one.labels) for one in sources]}
    return Domain(
        "faces",
        learned,
        learned,
        calibrate,
        tests,
        (0, FACES_WORLD),
        (0, 6_000),
        facts,
        losses=("logistic", "contrastive"),
        others=[(settings.backbone.name, dim) for dim in (64, 32)],
        is_verified=True,
    )


def _parts(data: Path, split: Path | None = None) -> tuple[list[Path], NDArray[np.int64], list[Rows]]:
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
    paths, owner, parts = _parts(data, split)
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
        is_fixed=True,
    )


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
    tests = {
        "": Test(test),
        "held-out typefaces": Test(source(_some((of == 2) & other, drawn.characters))),
    }
    labelled = len(np.unique(test.labels)) * 7 // 10
    facts = {
        "identities": [train.people, calibrate.people, test.people],
        "pictures": [len(one.labels) for one in (train, calibrate, test)],
        "typefaces": len(drawn.names),
        "held_out": [drawn.names[i] for i in np.flatnonzero(_held_out(drawn))],
        "sha256": drawn.checksum,
    }
    return Domain(
        "characters", train, train, calibrate, tests, (labelled, 24_000), (400, 6_000), facts, worlds=3
    )


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


def verification(network: SetNetwork, domain: Domain, device: str = "cpu") -> float:
    """Return the % of pairs of test faces told apart, at the best threshold of validation pairs."""
    pairs = []
    for source in (domain.calibrate, domain.tests[""].source):
        rows = compute_elements(network.to(device), source, np.arange(len(source.labels)), device).numpy()
        pairs.append(similarities(rows, source.labels, np.random.default_rng(0), PAIRS))
    network.cpu()

    def accuracy(of: Similarities, bar: float) -> float:
        return 50.0 * float((of.same > bar).mean() + (of.different <= bar).mean())

    fitted, judged = pairs
    return accuracy(judged, max(np.linspace(-1, 1, 401).tolist(), key=lambda bar: accuracy(fitted, bar)))


PAIRS = 20_000
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
        return [test.described(out) for test in tests]

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
