from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from setnet.collect.names import NameMatcher
from studies.collecting import CaptionNoise, caption

PEOPLE = ["Ann Cole", "Ben Dole", "Cid van Eck"]
QUIET = CaptionNoise(0.0, 0.0, 0.0, 0.0, 0.0)


@given(st.integers(0, 10_000))
def test_without_noise_everybody_is_named(seed: int) -> None:
    text = caption(PEOPLE, [], QUIET, np.random.default_rng(seed))
    assert set(NameMatcher(dict.fromkeys(PEOPLE, ())).find(text).names) == set(PEOPLE)


def test_noise_leaves_out_adds_and_misspells_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    noise = CaptionNoise(missing=0.2, added=0.3, misspelt=0.1, shortened=0.0, turned=0.0)
    matcher = NameMatcher(dict.fromkeys([*PEOPLE, "Eve Fox"], ()))
    found = [matcher.find(caption(PEOPLE, ["Eve Fox"], noise, rng)).names for _ in range(1000)]
    named = sum(name in names for names in found for name in PEOPLE) / 3000
    assert 0.68 < named < 0.76  # 0.8 * 0.9
    assert 0.23 < sum("Eve Fox" in names for names in found) / 1000 < 0.31
