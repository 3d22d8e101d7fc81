"""Identification and verification of single faces: the paper's check of its descriptor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.measures import match_rate_draws, people_draws
from setnet.evaluate.published import Template, read_templates
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.settings import MethodSettings, experiment, setting
from setnet.evaluate.tables import CAPTION, Column, Table, result_table
from setnet.heads import unit
from setnet.library import read_descriptors
from setnet.train.calibration import similarities

TITLE = "Identification of single faces"

Floats = NDArray[np.float32]
RANKS = (1, 5, 10)
FALSE_ACCEPT_RATES = (1e-4, 1e-3, 1e-2)


def identify_probes(
    gallery: Floats, probes: Floats, truth: NDArray[np.int64]
) -> dict[int, NDArray[np.float64]]:
    """Return for each probe 100 where its person is among the first so many of the gallery, else 0.

    >>> eye = np.eye(3, dtype=np.float32)
    >>> identify_probes(eye, eye, np.array([0, 1, 0]))[1].tolist()
    [100.0, 100.0, 0.0]
    """
    sims = probes @ gallery.T
    own = sims[np.arange(len(probes)), truth]
    place = (sims > own[:, None]).sum(axis=1)
    return {rank: 100.0 * (place < rank) for rank in RANKS}


def roc(same: Floats, different: Floats, rates: Sequence[float]) -> NDArray[np.float64]:
    """Return the true accept rate (genuine pairs, percent) at each false accept rate (non-matching pairs)."""
    bars = np.quantile(different, 1.0 - np.asarray(rates, np.float64))
    accepted: NDArray[np.float64] = 100.0 * (same[None, :] > bars[:, None]).mean(axis=1)
    return accepted


@dataclass(frozen=True, kw_only=True)
class Settings(MethodSettings):
    """1:N identification of single faces and verification, the paper's check of its descriptor."""

    benchmark: Path | None = setting(
        None,
        "Descriptors of all faces in the photos of IJB-A or IJB-B (setnet describe --all-faces).",
        metavar="FILE.npz",
    )
    gallery: Path | None = setting(None, "The benchmark's list of the gallery.", metavar="FILE.csv")
    probes: Path | None = setting(None, "The benchmark's list of probes.", metavar="FILE.csv")

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [self.benchmark, self.gallery, self.probes]
        if any(given) and not all(given):
            raise InvalidInputError("--benchmark, --gallery and --probes belong together")


@experiment("identify")
def run(run: Run, settings: Settings) -> None:
    """Measure identification rates and verification, for the descriptor, whitened, and every head.

    In each repeat a random half of a person's faces make their entry in the gallery (the mean), the other
    half are probes; in a benchmark its lists say so, once, and verification is left out.
    """
    split = settings.train_test_split()
    methods = settings.fitted_methods(split)
    test, groups = split.test, split.test.groups(2)
    if len(groups) < 2:
        raise InvalidInputError("identification needs two people or more with two faces each")
    names, owner = np.unique(test.labels, return_inverse=True)
    owner = np.where(names[owner] == "", -1, owner)
    single = ["descriptor", "descriptor +W"] if methods.whitens else ["descriptor"]
    heads = methods.chosen_heads(settings.methods)
    run.total = len(single) + len(heads)
    run.note(world=split.name, people=len(groups), faces=int(sum(map(len, groups))))
    lists = None
    if settings.benchmark and settings.gallery and settings.probes:
        lists = [read_templates(file, settings.benchmark) for file in (settings.gallery, settings.probes)]
        everyone = unit(read_descriptors(settings.benchmark)[0])
        missed = sum(one.missed for some in lists for one in some)
        faces = sum(len(one.rows) for some in lists for one in some)
        run.note(world=settings.benchmark.name, people=len(lists[0]), faces=faces, faces_not_found=missed)
    for name in [*single, *heads]:
        if run.has(name):
            continue
        run.say(name)
        rows = everyone if lists else test.descriptors
        if name.startswith("descriptor"):
            vectors = methods.whitening(rows) if name.endswith("+W") else rows
        else:
            vectors = methods.aggregator(name).describe(rows)
        if lists:
            truth, found = _of_templates(vectors, *lists)
            values = {f"tpir{rank}": [float(hits.mean())] for rank, hits in found.items()}
            who = [truth[:, None]]
            draws = {f"tpir{rank}": people_draws([hits], who).tolist() for rank, hits in found.items()}
            run.add(Row(name, values, {"dim": int(vectors.shape[1])}, draws=draws))
            continue
        values, draws = {}, {}
        for repeat in range(settings.repeats):
            rng = np.random.default_rng((settings.seed, repeat))
            truth, found = _one_repeat(vectors, groups, rng)
            for rank, hits in found.items():
                values.setdefault(f"tpir{rank}", []).append(float(hits.mean()))
                if not repeat:
                    drawn = people_draws([hits], [truth[:, None]])
                    draws[f"tpir{rank}"] = drawn.round(4).tolist()
            pairs = similarities(vectors, owner, rng)
            accepted = roc(pairs.same, pairs.different, FALSE_ACCEPT_RATES)
            for far, rate in zip(FALSE_ACCEPT_RATES, accepted, strict=True):
                values.setdefault(f"tar@{far:g}", []).append(float(rate))
        bars = np.quantile(pairs.different, 1.0 - np.asarray(FALSE_ACCEPT_RATES))
        for far, drawn in zip(FALSE_ACCEPT_RATES, _accepted_draws(vectors, groups, bars), strict=True):
            draws[f"tar@{far:g}"] = drawn.round(4).tolist()
        run.add(Row(name, values, {"dim": int(vectors.shape[1])}, draws=draws))


def _accepted_draws(
    vectors: Floats, groups: Sequence[NDArray[np.int64]], bars: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return (bars, draws): the share of genuine pairs accepted, every person counting alike."""
    pairs = [(vectors[rows] @ vectors[rows].T)[np.triu_indices(len(rows), 1)] for rows in groups]
    return match_rate_draws(np.array([[100.0 * (own > bar).mean() for own in pairs] for bar in bars]))


def _of_templates(
    vectors: Floats, gallery: Sequence[Template], probes: Sequence[Template]
) -> tuple[NDArray[np.int64], dict[int, NDArray[np.float64]]]:
    """Return whose template each probe is, and whether it was identified; one without a face found is not.

    Probes of people who are not in the gallery are left out: they are for the open-set test.
    """
    places = {one.subject: place for place, one in enumerate(gallery)}
    known = [one for one in probes if one.subject in places]
    if not known:
        raise InvalidInputError("no probe is of a person in the gallery: are both lists of one benchmark?")
    nobody = np.zeros(vectors.shape[1], np.float32)

    def means(some: Sequence[Template]) -> Floats:
        return unit(np.stack([vectors[[*one.rows]].mean(axis=0) if one.rows else nobody for one in some]))

    truth = np.array([places[one.subject] for one in known])
    seen = np.array([bool(one.rows) and bool(gallery[places[one.subject]].rows) for one in known])
    return truth, {
        rank: hits * seen for rank, hits in identify_probes(means(gallery), means(known), truth).items()
    }


def _one_repeat(
    vectors: Floats, groups: Sequence[NDArray[np.int64]], rng: np.random.Generator
) -> tuple[NDArray[np.int64], dict[int, NDArray[np.float64]]]:
    """Return whose face each probe is, and whether it was identified within each rank."""
    gallery, probes, truth = [], [], []
    for person, group in enumerate(groups):
        rows = rng.permutation(group)
        half = (len(rows) + 1) // 2
        gallery.append(vectors[rows[:half]].mean(axis=0))
        probes.append(rows[half:])
        truth.append(np.full(len(rows) - half, person))
    whose = np.concatenate(truth)
    return whose, identify_probes(unit(np.stack(gallery)), unit(vectors[np.concatenate(probes)]), whose)


def tables(record: Record) -> list[Table]:
    """Return the table of all rows."""
    columns = [Column("dim", "D", fact=True)]
    columns += [Column(f"tpir{rank}", f"rank {rank}", digits=2) for rank in RANKS]
    columns += [Column(f"tar@{rate:g}", f"TAR at FAR {rate:g}", digits=2) for rate in FALSE_ACCEPT_RATES]
    note = (
        f"{record.extra.get('people')} people. Rank: probes identified within that rank, percent. "
        "TAR at FAR: percentage of genuine pairs accepted at the threshold that this share of non-matching "
        "pairs passes. " + CAPTION
    )
    return [result_table("Identification and verification of single faces", record.rows, columns, note)]
