from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from setnet.collect.result.identity_split import SPLITS, split_of, split_people

NAMES = [f"p{n}" for n in range(12)]
PAIRS = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda p: p[0] < p[1]), st.integers(1, 9)
)


@given(PAIRS, st.sampled_from([(0.5, 0.1, 0.4), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.25, 0.5, 0.25)]))
def test_everybody_is_in_one_split_and_shares_are_met(
    together: dict[tuple[str, str], int], shares: tuple[float, float, float]
) -> None:
    splits = split_people(NAMES, together, shares)
    assert set(splits) == set(NAMES)
    counts = [list(splits.values()).count(split) for split in SPLITS]
    assert all(abs(count - 12 * share) <= 1 for count, share in zip(counts, shares, strict=True))
    assert splits == split_people(NAMES[::-1], together, shares)


def test_people_who_are_together_stay_together() -> None:
    circles = {(f"p{i}", f"p{j}"): 1 for i in range(12) for j in range(i + 1, 12) if i // 6 == j // 6}
    splits = split_people(NAMES, circles, (0.5, 0.0, 0.5))
    assert all(split_of(pair, splits) is not None for pair in circles)
