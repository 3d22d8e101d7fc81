"""Any combination of conditions, scoring, deletions and modes against the plain computation; their laws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from setnet import SetIndex
from setnet.engine import Hit, scan
from setnet.engine import segment as segment_writer
from setnet.engine.budget import rotation
from setnet.engine.query import KnownPair, Query, Scoring
from setnet.heads.logistic import Logistic

DIM, ITEMS, PLACES = 40, 420, ("Rome", "Oslo", "Lima")
LOGISTIC = Logistic(12.0, -6.0)
CLOSE = 1e-9  # similarities and scores nearer than this may fall on either side


@dataclass
class Collection:
    """What the index holds, as plain Python."""

    elements: dict[str, NDArray[Any]]
    attributes: dict[str, dict[str, Any]]
    people: NDArray[np.float32]
    alive: set[str] = field(default_factory=set)


def unit(rows: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True), np.float32)


@pytest.fixture(scope="module", params=[None, 60], ids=["floats", "budget codes"])
def collection(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[SetIndex, Collection]]:
    """Segments with codes and without, wide items, empty ones, replaced ones and deleted ones."""
    rng = np.random.default_rng(5)
    people = unit(rng.normal(size=(25, DIM)) + 0.3)  # not all directions are alike
    held = Collection({}, {}, people)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_writer, "SMALLEST_CODED", 40)
        path = tmp_path_factory.mktemp("laws") / "i"
        more: dict[str, Any] = {"bytes_per_item": request.param, "head": "mean"}
        with SetIndex.create(path, DIM, logistic=(LOGISTIC.w, LOGISTIC.b), **more) as index:
            for first, last in ((0, 300), (300, 320), (320, ITEMS), (100, 160)):  # the last ones are replaced
                names = [f"item {i}" for i in range(first, last)]
                counts = rng.integers(0, 5, len(names))
                counts[3] = 37
                who = rng.integers(0, len(people), counts.sum())
                rows = unit(people[who] + rng.normal(size=(len(who), DIM)) * 0.7 / np.sqrt(DIM))
                details = [
                    {"year": int(rng.integers(2000, 2006)), "place": PLACES[rng.integers(0, 3)]}
                    if rng.random() < 0.9
                    else {}
                    for _ in names
                ]
                index.add(names, rows, counts, details)
                for name, part, detail in zip(
                    names, np.split(rows, np.cumsum(counts)[:-1]), details, strict=True
                ):
                    held.elements[name], held.attributes[name] = part, detail
            gone = [f"item {i}" for i in rng.choice(ITEMS, 40, replace=False)]
            index.delete(gone)
        held.alive = set(held.elements) - set(gone)
        with SetIndex.open(path, read_only=True) as index:
            if request.param:
                held.elements |= decoded(index)
            yield index, held


def decoded(index: SetIndex) -> dict[str, NDArray[np.float64]]:
    """Return what budget codes stand for, in float64: `SetIndex.elements` rounds it."""
    found = dict[str, NDArray[np.float64]]()
    for segment in index._reader.snapshot().segments:
        rows = np.arange(len(segment))
        coordinates, *_ = segment.comparable(rows, Query.of(np.eye(1, DIM), DIM, LOGISTIC))
        vectors = coordinates @ rotation(DIM).T
        found |= dict(zip(segment.ids_of(rows), np.split(vectors, segment.offsets[1:-1]), strict=True))
    return found


@dataclass(frozen=True)
class Case:
    """A query with its options, as drawn."""

    query: list[NDArray[np.float32]]  # examples of each query element
    options: dict[str, Any]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a query of people of the collection and of nobody in it, and any options."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    people = unit(np.random.default_rng(5).normal(size=(25, DIM)) + 0.3)

    def faces(n: int) -> NDArray[np.float32]:
        return unit(people[rng.integers(0, 25, n)] + rng.normal(size=(n, DIM)) * 0.6 / np.sqrt(DIM))

    several = draw(st.booleans())
    size = draw(st.integers(1, 6))
    query = [faces(int(rng.integers(1, 4)) if several else 1) for _ in range(size)]
    options: dict[str, Any] = {"k": draw(st.sampled_from([1, 5, 30, 1000]))}
    if several:
        options["examples"] = draw(st.sampled_from(["mean", "max"]))
    if draw(st.booleans()):
        options["where"] = draw(
            st.sampled_from(
                [
                    {"place": "Rome"},
                    {"place": ["Oslo", "Lima"]},
                    {"year": {">=": 2002, "<": 2005}},
                    {"year": {"!=": 2003}, "place": {"prefix": "R"}},
                    {"year": 2001, "place": "Lima"},
                ]
            )
        )
    options["only"] = draw(st.booleans())
    options["at_least"] = draw(st.integers(0, 3))
    if draw(st.integers(0, 3)) == 0:
        options["without"] = faces(1)
    unwanted = len(options.get("without", ()))
    if draw(st.booleans()):
        centres = tuple(rng.uniform(0.4, 0.6, size).round(3).tolist())
        thresholds = tuple(rng.uniform(0.1, 0.6, size).round(3).tolist())
        options["scoring"] = Scoring(15.0, centres, thresholds, (0.5,) * unwanted)
    if draw(st.integers(0, 3)) == 0:
        options["matching"] = "maxsim"
    elif draw(st.booleans()):
        options["known"] = {
            f"item {rng.integers(0, ITEMS)}": [
                KnownPair(
                    int(rng.integers(0, size + unwanted)),
                    int(rng.integers(-1, 3)),
                    bool(rng.random() < 0.5),
                )
            ]
            for _ in range(9)
        }
    return Case(query, options)


def holds(attributes: dict[str, Any], where: dict[str, Any]) -> bool:
    """Whether an item satisfies all conditions."""
    tests: dict[str, Callable[[Any, Any], bool]] = {
        ">=": lambda value, x: value >= x,
        "<": lambda value, x: value < x,
        "!=": lambda value, x: value != x,
        "prefix": lambda value, x: value.startswith(x),
        "in": lambda value, x: value in x,
    }
    for name, wanted in where.items():
        if name not in attributes:
            return False
        operators = (
            wanted if isinstance(wanted, dict) else {"in": wanted if isinstance(wanted, list) else [wanted]}
        )
        if not all(tests[operator](attributes[name], x) for operator, x in operators.items()):
            return False
    return True


def scores(held: Collection, case: Case) -> dict[str, float]:
    """Return the score of every item that meets all conditions, the long way round."""
    options = case.options
    scoring = options.get("scoring") or Scoring(
        LOGISTIC.w, (LOGISTIC.threshold,) * len(case.query), (LOGISTIC.threshold,) * len(case.query)
    )
    unwanted_least = scoring.without or (LOGISTIC.threshold,)
    found = {}
    for name in held.alive:
        rows = held.elements[name].astype(np.float64)
        known = options.get("known", {}).get(name, [])
        told = {pair.query_element for pair in known if pair.element == -1 and pair.is_match}
        there = {p for p in told if p < len(case.query)}
        if not (len(rows) or there) or (
            "where" in options and not holds(held.attributes[name], options["where"])
        ):
            continue
        averages = options.get("examples") == "mean"
        pair, key, share = (np.empty((len(case.query), len(rows))) for _ in range(3))
        for p, examples in enumerate(case.query):
            sims = examples.astype(np.float64) @ rows.T
            chance = 1 / (1 + np.exp(-scoring.w * (sims - scoring.centres[p])))
            pair[p] = sims.mean(axis=0) if averages else sims.max(axis=0)
            share[p] = chance.mean(axis=0) if averages else chance.max(axis=0)
            key[p] = share[p] if averages else pair[p] - scoring.centres[p]
        is_match = pair >= np.array(scoring.thresholds)[:, None]
        against = options.get("without", np.zeros((0, DIM))).astype(np.float64) @ rows.T
        is_unwanted = against >= np.resize(unwanted_least, (len(against), 1))
        for p, element, says in known:
            if 0 <= element < len(rows) and p < len(case.query):
                key[p, element] = np.inf if says else -np.inf
                share[p, element], is_match[p, element] = float(says), says
            elif 0 <= element < len(rows):
                is_unwanted[p - len(case.query), element] = says
        for p in there:
            key[p, ~is_match[p]] = -np.inf
        taken: list[tuple[int, int]] = []
        if options.get("matching") == "maxsim":
            taken, share = list(enumerate(pair.argmax(axis=1).tolist())), pair
            key[:] = -np.inf
        while key.max(initial=-np.inf) > -np.inf:
            p, e = (int(i) for i in np.unravel_index(np.argmax(key), key.shape))
            taken.append((p, e))
            key[p, :] = key[:, e] = -np.inf
        others = [at for at in taken if at[0] not in there]
        if len(there) + sum(is_match[at] for at in others) < options["at_least"]:
            continue
        if options["only"] and not is_match.any(axis=0).all():
            continue
        if is_unwanted.any() or told - there:
            continue
        found[name] = len(there) + float(sum(share[at] for at in others))
    return found


def asked(index: SetIndex, case: Case, **changed: Any) -> Sequence[Hit]:
    return index.search(case.query, threads=1, **case.options | changed)


def agrees(hits: Sequence[Hit], expected: dict[str, float], k: int) -> None:
    """Assert that hits are the best k, wherever scores tell."""
    best = sorted(expected.values(), reverse=True)[:k]
    assert len(hits) == len(best)
    assert len({hit.id for hit in hits}) == len(hits)
    for hit, score in zip(hits, best, strict=True):
        assert hit.score == pytest.approx(expected[hit.id], abs=CLOSE)
        assert expected[hit.id] == pytest.approx(score, abs=CLOSE)


LAW = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@LAW
@given(case=cases(), crowded=st.sampled_from([-1.0, 1 / 32, 1.0]))
def test_any_combination_is_answered_as_by_scoring_everything(
    collection: tuple[SetIndex, Collection], case: Case, crowded: float
) -> None:
    index, held = collection
    expected = scores(held, case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "LEAST_SAMPLE", 16)
        patch.setattr(scan, "CROWDED", crowded)
        agrees(asked(index, case), expected, case.options["k"])
    every = {"mode": "fast", "candidates": 10_000, "k": 1000}
    agrees(asked(index, case, **every), expected, 1000)


@LAW
@given(case=cases(), mode=st.sampled_from(["exact", "fast", "set"]))
def test_another_condition_never_adds_or_changes_a_hit(
    collection: tuple[SetIndex, Collection], case: Case, mode: str
) -> None:
    index, held = collection
    given: dict[str, Any] = {
        "only": False,
        "at_least": 0,
        "where": None,
        "without": None,
        "known": None,
        "scoring": None,
    }
    given |= {"mode": mode, "k": 1000, "candidates": 1000}
    if scoring := case.options.get("scoring"):
        given["scoring"] = Scoring(scoring.w, scoring.centres, scoring.thresholds)
    before = {hit.id: hit.score for hit in asked(index, case, **given)}
    for name in ("only", "at_least", "where"):
        if name in case.options:
            some = asked(index, case, **given | {name: case.options[name]})
            assert {hit.id: hit.score for hit in some}.items() <= before.items()
    for name in ("without", "where", "at_least", "only"):  # and one after another
        if name in case.options:
            given[name] = case.options[name]
            given["scoring"] = scoring if given["without"] is not None else given["scoring"]
            some = asked(index, case, **given)
            assert {hit.id: hit.score for hit in some}.items() <= before.items()
            before = {hit.id: hit.score for hit in some}
    assert before.keys() <= held.alive


@LAW
@given(case=cases())
def test_the_best_of_fewer_are_the_first_of_more(collection: tuple[SetIndex, Collection], case: Case) -> None:
    index, _ = collection
    hits = asked(index, case)
    fewer = asked(index, case, k=max(1, case.options["k"] // 2))
    assert hits[: len(fewer)] == fewer


@LAW
@given(case=cases())
def test_the_order_of_the_query_does_not_matter(collection: tuple[SetIndex, Collection], case: Case) -> None:
    index, _ = collection
    turned = dict(case.options)
    turned.pop("known", None)
    hits = index.search(case.query, **turned)
    if scoring := turned.get("scoring"):
        turned["scoring"] = Scoring(
            scoring.w, scoring.centres[::-1], scoring.thresholds[::-1], scoring.without
        )
    agrees(index.search(case.query[::-1], **turned), {hit.id: hit.score for hit in hits}, case.options["k"])
