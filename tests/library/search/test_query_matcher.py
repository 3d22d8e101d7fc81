"""The score of a photo: the expected number of the people asked for who are in it."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from setnet.engine.query import Query
from setnet.engine.rank import rank_given
from setnet.engine.results import RankedItems
from setnet.faces.settings import load_calibration
from setnet.heads import ELEMENT_LOGISTIC
from setnet.library.person_matcher import PersonMatcher
from setnet.library.query import PhotoQuery, QueryPerson
from setnet.library.score_calibration import ScoreCalibration
from setnet.library.search import QueryMatcher
from tests.support.soak import examples

MODEL = ScoreCalibration.of(load_calibration("sface", "match"))
PEOPLE, PHOTOS = 3, 6
DIM = PEOPLE + PHOTOS * PEOPLE


class Known:
    """Stands for a library's matching: the matcher of each person, by name."""

    def __init__(self, matchers: dict[str, PersonMatcher]) -> None:
        self._matchers = matchers

    def matcher(self, person: QueryPerson) -> PersonMatcher:
        return self._matchers[person.name]


def matching_of(examples: tuple[int, ...], faces: int, sure: bool = False) -> QueryMatcher:
    axes = np.eye(DIM, dtype=np.float32)
    people = [QueryPerson(f"person {i}", axes[i : i + 1]) for i in range(len(examples))]
    known = {
        person.name: PersonMatcher.of(MODEL, axes[i], count, MODEL.non_match_scores(count), faces)
        for i, (person, count) in enumerate(zip(people, examples, strict=True))
    }
    return QueryMatcher(Known(known), PhotoQuery(people, sure=sure), people, [])  # type: ignore[arg-type]


def photo(number: int, similarities: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return a face for each person, as similar to them as asked for and to nobody else."""
    axes = np.eye(DIM)
    rest = axes[PEOPLE + PEOPLE * number :][:PEOPLE]
    rows = similarities[:, None] * axes[:PEOPLE] + np.sqrt(1 - similarities**2)[:, None] * rest
    return rows.astype(np.float32)


def ranked(matching: QueryMatcher, rows: NDArray[np.float64]) -> RankedItems:
    """Return photos whose faces are as similar to the people as asked for, as the engine ranks them."""
    faces = np.concatenate([photo(number, row) for number, row in enumerate(rows)])
    return rank_faces(matching, [str(number) for number in range(len(rows))], faces, 0)


def rank_faces(
    matching: QueryMatcher, ids: list[str], faces: NDArray[np.float32], at_least: int
) -> RankedItems:
    """Rank photos that have the same number of faces each, at least one of the people in each."""
    counts = np.full(len(ids), len(faces) // len(ids))
    options = matching.options(None, at_least, 1)
    query = Query.of(matching.vectors, DIM, ELEMENT_LOGISTIC, len(ids), **options)
    return rank_given(ids, faces, counts, query)


table = st.lists(
    st.lists(st.floats(0, 0.95), min_size=PEOPLE, max_size=PEOPLE), min_size=PHOTOS, max_size=PHOTOS
)


@settings(max_examples=examples(25), deadline=None)
@given(table, st.tuples(*[st.sampled_from([1, 3, 10])] * PEOPLE), st.sampled_from([300, 30_000]))
def test_a_photo_where_nobody_is_less_probable_is_never_behind(
    rows: list[list[float]], examples: tuple[int, ...], faces: int
) -> None:
    matching = matching_of(examples, faces)
    similarities = np.array(rows)
    found = ranked(matching, similarities)
    score = dict(zip(map(int, found.ids), found.scores.tolist(), strict=True))
    place = {number: at for at, number in enumerate(score)}
    probability = np.array(
        [[r.probability(s) for r, s in zip(matching.matchers, row, strict=True)] for row in rows]
    )
    for one, other in product(range(PHOTOS), repeat=2):
        is_as_probable = (similarities[one] >= similarities[other] + 1e-6).all()
        if is_as_probable:
            assert (probability[one] >= probability[other]).all()
            assert place[one] < place[other] or score[one] == score[other]


def test_a_match_that_is_no_more_than_a_guess_still_counts() -> None:
    matching = matching_of((1, 1, 1), 3000)
    guess = 0.5 * (matching.matchers[0].maybe + matching.matchers[0].sure)
    found = ranked(matching, np.array([[0.9, 0.0, 0.0], [guess, guess, 0.0]]))
    assert list(found.ids) == ["1", "0"]
    assert found.scores[0] > 1.5


near = st.floats(-0.06, 0.06)


@settings(max_examples=examples(20), deadline=None)
@given(near, near, st.tuples(*[st.sampled_from([1, 3, 10])] * 2), st.booleans())
@example(0.005, -0.004, (3, 1), False)
def test_whom_one_name_finds_either_name_finds(
    above_first: float, above_second: float, examples: tuple[int, int], sure: bool
) -> None:
    """A face that matches one person is not taken by another one whom it does not match."""
    matching = matching_of(examples, 5000, sure)
    least = [r.sure if sure else r.maybe for r in matching.matchers]
    face = np.zeros((1, DIM), np.float32)
    face[0, :2] = least[0] + above_first, least[1] + above_second
    face[0, 2] = np.sqrt(1 - (face**2).sum())
    both = rank_faces(matching, ["photo"], face, 1)
    similarities = matching.vectors @ face[0]
    if (similarities >= np.array(least) + 1e-5).any():
        assert list(both.ids) == ["photo"]
    if (similarities < np.array(least) - 1e-5).all():
        assert list(both.ids) == []


def test_what_is_sure_does_not_depend_on_the_score() -> None:
    known = PersonMatcher.of(MODEL, np.eye(DIM, dtype=np.float32)[0], 1, MODEL.non_match_scores(1), 3000)
    assert known.even < known.maybe < known.sure
    assert MODEL.false_match_rate(known.sure, known.non_matches) <= 1e-6 * (1 + 1e-9)
