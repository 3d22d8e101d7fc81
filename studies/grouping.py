"""How well unknown faces are grouped by person, beside other clusterings, in libraries of several shapes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.evaluate.people import LFW_LIKE, LabelledPeople, read_people, train_test_split
from setnet.evaluate.record import Record, Row, Run, fingerprint
from setnet.evaluate.settings import Settings as BaseSettings
from setnet.evaluate.settings import experiment, option, setting
from setnet.evaluate.tables import Column, Table, result_table
from setnet.library import group_descriptors
from setnet.train import VirtualPeople
from studies.matching_faces import check_one_model

Rows = NDArray[np.int64]
Draw = Callable[[Sequence[Rows], np.random.Generator], Rows]

TITLE = "Unknown faces grouped by person"
LARGE = 20_000  # faces
_IN_A_PHOTO = (1, 2, 3, 4, 6)  # faces, with these shares
_SHARES = (0.4, 0.3, 0.15, 0.1, 0.05)


@dataclass(frozen=True, eq=False)
class Shape:
    """Faces to group, and the photo that each is in where several share one."""

    people: LabelledPeople
    photos: NDArray[np.int64] | None = None


def shapes(people: LabelledPeople, seed: int) -> dict[str, Shape]:
    """Return libraries by what they are like, drawn from these people; others are drawn with another seed."""
    each = people.groups()
    found = {}
    for number, (name, draw) in enumerate(_DRAWN.items()):
        rows = draw(each, np.random.default_rng((seed, number)))
        if len(rows):
            found[name] = Shape(LabelledPeople(people.descriptors[rows], people.labels[rows]))
    rng = np.random.default_rng((seed, 50))
    found["several faces in each photo"] = Shape(people, photos_at_random(people.labels, rng))
    model = VirtualPeople.load(LFW_LIKE)
    if model.dim == people.dim and len(people.labels) < LARGE:
        found[f"{LARGE:,} faces, most of virtual people"] = Shape(_filled(people, model, rng))
    return found


def photos_at_random(labels: NDArray[np.str_], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a photo for each face, of one to six faces, nobody twice in one."""
    order = rng.permutation(len(labels))
    sizes = rng.choice(_IN_A_PHOTO, size=len(labels), p=_SHARES)
    photo = np.repeat(np.arange(len(sizes)), sizes)[: len(labels)]
    named = list(zip(photo.tolist(), labels[order].tolist(), strict=True))
    first = {pair: place for place, pair in reversed([*enumerate(named)])}
    again = np.array([first[pair] != place for place, pair in enumerate(named)], bool)
    photo[again] = len(sizes) + np.flatnonzero(again)
    found = np.empty(len(labels), np.int64)
    found[order] = photo
    return found


def _one_each(each: Sequence[Rows], rng: np.random.Generator) -> Rows:
    return np.array([rng.choice(rows) for rows in each])


def _several(least: int, most_people: int | None = None) -> Draw:
    def draw(each: Sequence[Rows], rng: np.random.Generator) -> Rows:
        some = [rows for rows in each if len(rows) >= least]
        chosen = rng.permutation(len(some))[:most_people]
        return _joined([some[i] for i in chosen])

    return draw


def _faces(count: int) -> Draw:
    def draw(each: Sequence[Rows], rng: np.random.Generator) -> Rows:
        order = rng.permutation(len(each))
        ends = np.cumsum([len(each[i]) for i in order])
        return _joined([each[i] for i in order[: np.searchsorted(ends, count) + 1]])

    return draw


def _mostly_one(each: Sequence[Rows], rng: np.random.Generator) -> Rows:
    """Return the faces of somebody who has many, nine for each face of anybody else."""
    many = [rows for rows in each if len(rows) >= 18]
    if not many:
        return np.empty(0, np.int64)
    one = many[int(rng.integers(len(many)))]
    others = _joined([rows for rows in each if rows[0] != one[0]])
    return np.concatenate([one, rng.choice(others, len(one) // 9, replace=False)])


def _joined(parts: Sequence[Rows]) -> Rows:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _filled(people: LabelledPeople, model: VirtualPeople, rng: np.random.Generator) -> LabelledPeople:
    count = LARGE - len(people.labels)
    sizes = np.minimum(1 / (1 - rng.random(count)), 200).astype(np.int64)
    who = np.repeat(np.arange(count), sizes)[:count]
    faces = model.faces(rng, model.people(rng, int(who.max()) + 1), who)
    labels = np.concatenate([people.labels, np.array([f"virtual {i}" for i in who.tolist()])])
    return LabelledPeople(np.concatenate([people.descriptors, faces]), labels)


_DRAWN: dict[str, Draw] = {
    "one face of each person": _one_each,
    "people of two faces or more": _several(2),
    "20 people of ten faces or more": _several(10, 20),
    "3 people of ten faces or more": _several(10, 3),
    "nine of ten faces of one person": _mostly_one,
    "200 faces": _faces(200),
    "1,000 faces": _faces(1000),
}


@dataclass(frozen=True, slots=True)
class GroupQuality:
    """Measures of groups against the ground truth.

    Attributes
    ----------
    precision, recall
        BCubed (Bagga and Baldwin 1998): of the faces in a face's group, the share that are of its person; of
        its person's faces, the share that are in its group; the mean over all faces.
    found
        The share of people with two faces or more of whom half the faces or more are in one group, which is
        of nobody else to a tenth or more.
    """

    precision: float
    recall: float
    found: float

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def group_quality(groups: ArrayLike, people: ArrayLike) -> GroupQuality:
    """Compare the group of each face with whose face it is.

    >>> group_quality([0, 0, 0, 1], ["ann", "ann", "ben", "ben"])
    GroupQuality(precision=0.6666666666666666, recall=0.75, found=0.5)
    """
    group, group_size = _numbered(groups)
    person, person_size = _numbered(people)
    pair, place, shared = np.unique(
        group * len(person_size) + person, return_inverse=True, return_counts=True
    )
    pure = shared / group_size[pair // len(person_size)]
    owner = pair % len(person_size)
    whole = shared / person_size[owner]
    several = person_size > 1
    seen = np.zeros(len(person_size), bool)
    seen[owner[(pure > 0.9) & (whole >= 0.5)]] = True
    found = float(seen[several].mean()) if several.any() else 1.0
    return GroupQuality(float(pure[place].mean()), float(whole[place].mean()), found)


def pairwise_agreement(one: ArrayLike, other: ArrayLike) -> float:
    """Return the share of pairs together in either of two groupings that are together in both (Jaccard).

    >>> pairwise_agreement([0, 0, 0, 1], [5, 5, 7, 7])
    0.25
    """
    first, first_size = _numbered(one)
    second, second_size = _numbered(other)
    both = np.unique(first * len(second_size) + second, return_counts=True)[1]
    pairs = [float((sizes * (sizes - 1)).sum()) for sizes in (both, first_size, second_size)]
    either = pairs[1] + pairs[2] - pairs[0]
    return pairs[0] / either if either else 1.0


def _numbered(values: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    _, numbers, sizes = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return numbers.astype(np.int64), sizes.astype(np.int64)


Floats = NDArray[np.float32]
Groups = NDArray[np.int64]
Peer = Callable[[Floats, float], Groups]  # of descriptors and a threshold

_WHISPERS = 20  # rounds


def connected_components(faces: Floats, threshold: float) -> Groups:
    """Return groups of faces that are linked by a chain of similarities at or above the threshold."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components as components

    return np.asarray(components(csr_array(_table(faces) >= threshold), directed=False)[1], np.int64)


def average_linkage(faces: Floats, threshold: float) -> Groups:
    """Return the clusters whose mean similarity reaches the threshold; all pairs are compared."""
    from scipy.cluster.hierarchy import fcluster

    return np.asarray(fcluster(_tree(faces), 1 - threshold, "distance"), np.int64)


def chinese_whispers(faces: Floats, threshold: float) -> Groups:
    """Return the groups that faces settle in when each joins the one it is most similar to (Biemann 2006)."""
    table = _table(faces)
    near = [np.flatnonzero((row >= threshold) & (np.arange(len(row)) != i)) for i, row in enumerate(table)]
    groups = np.arange(len(faces))
    rng = np.random.default_rng(0)
    for _ in range(_WHISPERS):
        for face in rng.permutation(len(faces)).tolist():
            if len(near[face]):
                names, place = np.unique(groups[near[face]], return_inverse=True)
                groups[face] = names[np.bincount(place, table[face, near[face]]).argmax()]
    return groups


def hdbscan(faces: Floats, threshold: float) -> Groups:
    """Return the clusters of scikit-learn's HDBSCAN of two faces or more; noise is alone. No threshold."""
    from sklearn.cluster import HDBSCAN

    found = HDBSCAN(min_cluster_size=2, min_samples=1, copy=True).fit_predict(faces.astype(np.float64))
    alone = found < 0
    found[alone] = found.max(initial=-1) + 1 + np.arange(alone.sum())
    return np.asarray(found, np.int64)


def _table(faces: Floats) -> Floats:
    return np.asarray(faces @ faces.T)


_trees: dict[int, NDArray[np.float64]] = {}


def _tree(faces: Floats) -> NDArray[np.float64]:
    """Return the tree of all merges; that of the latest faces is kept, as several thresholds cut it."""
    from scipy.cluster.hierarchy import linkage

    if id(faces) not in _trees:
        _trees.clear()
        apart = 1 - _table(faces)[np.triu_indices(len(faces), 1)]
        _trees[id(faces)] = linkage(np.maximum(apart, 0).astype(np.float64), "average")
    return _trees[id(faces)]


PEERS: dict[str, Peer] = {
    "connected components": connected_components,
    "Chinese whispers": chinese_whispers,
    "average linkage, one threshold": average_linkage,
}


THRESHOLDS = np.arange(0.36, 0.641, 0.02)
OURS = "setnet people discover"
SHAPES = "libraries of other shapes"  # table of the rows that are not methods


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Unknown faces grouped by person, beside simpler ways: BCubed measures on people held out.

    Thresholds of the other methods are the best on one half of the people, all are measured on the other
    half; setnet takes nothing from either.
    """

    descriptors: Path = field(
        metadata=option("Descriptor file, as `setnet describe` writes it.", metavar="FILE.npz", counts=False)
    )
    others: Sequence[Path] = setting(
        (),
        "Of other photos of the same people, such as degraded copies; repeatable.",
        "--other",
        metavar="FILE.npz",
        counts=False,
    )
    repeats: int = setting(5, "Libraries of other shapes of each file.", minimum=1)

    def identity(self) -> dict[str, Any]:
        """Return what the numbers depend on."""
        files = [fingerprint(file) for file in (self.descriptors, *self.others)]
        return {"descriptors": files} | super().identity()


@experiment("grouping")
def run(run: Run, settings: Settings) -> None:
    """Group the faces of people that nothing was chosen on, and compare with ground truth."""
    files = [settings.descriptors, *settings.others]
    check_one_model(files)
    run.total = len(PEERS) + 1 + _has_hdbscan() + len(files)
    split = train_test_split(read_people(settings.descriptors), settings.descriptors.name)
    tested = [_known(split.test)]
    tested += [_known(train_test_split(read_people(file), file.name).test) for file in files[1:]]
    run.note(
        world=split.name,
        sources=[file.stem for file in files],
        faces=[len(people.labels) for people in tested],
        people=[len(people.groups()) for people in tested],
    )
    for name, peer in PEERS.items():
        if not run.has(name):
            run.say(f"{name}: choosing a threshold")
            best = _best_threshold(peer, _known(split.train))
            _measure(run, name, peer, best, tested)
    if _has_hdbscan() and not run.has("HDBSCAN"):
        _measure(run, "HDBSCAN", hdbscan, None, tested)
    if not run.has(OURS):
        _measure(run, OURS, lambda faces, _: group_descriptors(faces), None, tested)
    for number, people in enumerate(tested):
        _shapes(run, number, people, range(settings.seed, settings.seed + settings.repeats))


def _has_hdbscan() -> bool:
    return find_spec("sklearn") is not None


def _known(people: LabelledPeople) -> LabelledPeople:
    rows = people.labels != ""
    return LabelledPeople(people.descriptors[rows], people.labels[rows])


def _best_threshold(peer: Peer, people: LabelledPeople) -> float:
    found = [group_quality(peer(people.descriptors, t), people.labels).f1 for t in THRESHOLDS.tolist()]
    return round(float(THRESHOLDS[int(np.argmax(found))]), 2)


def _measure(
    run: Run, name: str, peer: Peer, threshold: float | None, tested: Sequence[LabelledPeople]
) -> None:
    run.say(name)
    values: dict[str, list[float]] = {}
    began = process_time()
    for number, people in enumerate(tested):
        groups: NDArray[np.int64] = peer(people.descriptors, threshold or 0.0)
        for measure, value in _measures(group_quality(groups, people.labels)).items():
            values[f"{measure} {number}"] = [value]
    seconds = (process_time() - began) / sum(len(people.labels) for people in tested) * 10_000
    run.add(Row(name, values, {"threshold": threshold, "seconds": round(seconds, 2)}))


def _shapes(run: Run, number: int, people: LabelledPeople, seeds: Sequence[int]) -> None:
    source = run.extra["sources"][number]
    run.say(f"{source}: {SHAPES}")
    values: dict[str, dict[str, list[float]]] = {}
    for seed in seeds:
        for name, shape in shapes(people, seed).items():
            if run.has(f"{source}: {name}"):
                continue
            groups = group_descriptors(shape.people.descriptors, photos=shape.photos)
            found = _measures(group_quality(groups, shape.people.labels))
            found["faces"], found["people"] = len(groups), len(shape.people.groups())
            for measure, value in found.items():
                values.setdefault(name, {}).setdefault(measure, []).append(value)
    for name, measured in values.items():
        run.add(Row(f"{source}: {name}", measured, {"table": SHAPES}))


def _measures(quality: GroupQuality) -> dict[str, float]:
    parts = {
        "precision": quality.precision,
        "recall": quality.recall,
        "f1": quality.f1,
        "found": quality.found,
    }
    return {measure: 100 * value for measure, value in parts.items()}


_BCUBED = ("precision", "recall", "f1")


def tables(record: Record) -> list[Table]:
    """Return ours beside other ways for each source of photos, then ours in libraries of other shapes."""
    note = (
        "BCubed, in percent. Thresholds are the best on the other half of the first file's people; "
        "setnet takes none. Found: people of two faces or more of whom half or more are in one group of "
        "their own. Seconds of CPU for 10,000 faces."
    )
    methods = [row for row in record.rows if row.facts.get("table") != SHAPES]
    found = []
    sizes = zip(record.extra["sources"], record.extra["faces"], record.extra["people"], strict=True)
    for number, (source, faces, people) in enumerate(sizes):
        columns = [Column("threshold", "threshold", fact=True, digits=2)]
        columns += [Column(f"{name} {number}", name, digits=2) for name in _BCUBED]
        columns += [Column(f"found {number}", "found"), Column("seconds", "seconds", fact=True)]
        title = f"Grouping {faces:,} faces of {people:,} people: {source}"
        found.append(result_table(title, methods, columns, note))
    return [*found, *_shapes_tables(record)]


def _shapes_tables(record: Record) -> list[Table]:
    rows = [replace(row, bound=True) for row in record.rows if row.facts.get("table") == SHAPES]
    if not rows:
        return []
    columns = [Column(name, name, digits=0) for name in ("faces", "people")]
    columns += [Column(name, name, digits=2) for name in (*_BCUBED, "found")]
    note = (
        "setnet, with no setting changed, on other choices of the same people's faces. Mean ± standard error "
        "over repeats. Photos of several faces were put together at random; virtual people are drawn from "
        "the statistics of real descriptors."
    )
    table = result_table("Libraries of other shapes", rows, columns, note)
    return [replace(table, columns=("library", *table.columns[1:]))]


if __name__ == "__main__":
    from setnet.cli.evaluate import run_study

    run_study(sys.modules[__name__], "python -m studies.grouping")
