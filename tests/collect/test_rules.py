from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.collect import AnnotationRules
from setnet.collect.rules import NamedScore, Outcome, without_repeats
from setnet.errors import InvalidInputError

RULES = AnnotationRules()
QUERY = {"Ann", "Ben"}
PAPER = 2622


def ranked(**scores: float) -> list[NamedScore]:
    return [NamedScore(name, score) for name, score in scores.items()]


@pytest.mark.parametrize(
    ("scores", "outcome"),
    [
        ({"Ann": 0.21}, Outcome.ACCEPTED),
        ({"Ann": 0.2}, Outcome.ASK),  # higher than 0.2, says the paper
        ({"Ann": 0.05, "Zed": 0.04}, Outcome.ASK),
        ({"Zed": 0.8}, Outcome.ACCEPTED),  # exactly 0.8 passes
        ({"Zed": 0.799}, Outcome.DROP_PHOTO),
        ({"Zed": 0.4}, Outcome.DROP_PHOTO),  # exactly 0.4 is not below it
        ({"Zed": 0.399}, Outcome.UNKNOWN),
        # another name on top, a query name among the five
        ({"Zed": 0.9, "Ann": 0.05}, Outcome.ACCEPTED),
        ({"Zed": 0.6, "Ann": 0.05}, Outcome.ASK),
        ({"Zed": 0.1, "Ann": 0.05}, Outcome.ASK),
        ({"Zed": 0.6, "Y": 0.1, "X": 0.1, "W": 0.1, "V": 0.05, "Ann": 0.01}, Outcome.DROP_PHOTO),
        ({}, Outcome.UNKNOWN),
    ],
)
def test_each_case_of_the_paper_and_each_it_leaves_open(scores: dict[str, float], outcome: Outcome) -> None:
    decision = RULES.decide(ranked(**scores), QUERY, PAPER)
    assert decision.outcome is outcome
    assert decision.name == (next(iter(scores)) if outcome is Outcome.ACCEPTED else None)


@pytest.mark.parametrize(
    ("names", "scores", "outcome"),
    [
        (2, {"Ann": 0.001, "Ben": 0.0}, Outcome.UNKNOWN),  # on top, as one of the two has to be
        (2, {"Ann": 0.05, "Ben": 0.0}, Outcome.ASK),
        (6, {"Zed": 0.1, "Ann": 0.001}, Outcome.UNKNOWN),
        (6, {"Zed": 0.1, "Ann": 0.01}, Outcome.ASK),
        (6, {"Zed": 0.6, "Ann": 0.001}, Outcome.DROP_PHOTO),
        (40, {"Zed": 0.1, "Ann": 0.001}, Outcome.ASK),  # second of 40: by chance in one of 20
        (40, {"Zed": 0.1, "Y": 0.01, "Ann": 0.001}, Outcome.UNKNOWN),
        (100, {"Z": 0.1, "Y": 0.1, "X": 0.1, "W": 0.1, "Ann": 0.0}, Outcome.ASK),
    ],
)
def test_in_a_short_list_a_rank_alone_is_no_reason_to_ask(
    names: int, scores: dict[str, float], outcome: Outcome
) -> None:
    assert RULES.decide(ranked(**scores), QUERY, names).outcome is outcome


def test_of_two_faces_with_one_name_the_better_keeps_it_and_the_other_is_asked() -> None:
    faces = [ranked(Ann=0.5), ranked(Ann=0.9), ranked(Ben=0.3), ranked(Ann=0.6)]
    decided = without_repeats([RULES.decide(face, QUERY, PAPER) for face in faces], faces)
    assert [d.outcome for d in decided] == [Outcome.ASK, Outcome.ACCEPTED, Outcome.ACCEPTED, Outcome.ASK]
    assert [d.name for d in decided] == [None, "Ann", "Ben", None]


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.floats(0.3, 1)), max_size=6))
def test_no_name_is_accepted_twice_and_none_is_lost(faces: list[tuple[str, float]]) -> None:
    best = [[NamedScore(name, score)] for name, score in faces]
    decided = without_repeats([RULES.decide(each, {"A", "B", "C"}, PAPER) for each in best], best)
    accepted = [d.name for d in decided if d.outcome is Outcome.ACCEPTED]
    assert sorted(accepted, key=str) == sorted({name for name, _ in faces})


@pytest.mark.parametrize(
    "wrong", [{"accept_query": 2}, {"accept_other": 0.3}, {"best": 0}, {"unknown_below": True}]
)
def test_thresholds_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        AnnotationRules(**wrong)  # type: ignore[arg-type]
