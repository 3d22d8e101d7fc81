from __future__ import annotations

from itertools import combinations
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from setnet.library import DuplicateGroup, merge_groups

SIZES = {
    Path(f"/photos/{name}.jpg"): size for name, size in zip("abcdefgh", (9, 1, 5, 5, 7, 2, 8, 4), strict=True)
}
GROUPS = st.lists(
    st.sets(st.sampled_from(sorted(SIZES)), min_size=2).map(
        lambda s: DuplicateGroup.of({p: SIZES[p] for p in s})
    )
)


@given(GROUPS, st.randoms(use_true_random=False))
def test_merged_groups_share_no_photo_and_lose_none_in_any_order(
    groups: list[DuplicateGroup], chance: object
) -> None:
    merged = merge_groups(groups)
    assert all(not set(one.photos) & set(other.photos) for one, other in combinations(merged, 2))
    assert all(any(set(g.photos) <= set(m.photos) for m in merged) for g in groups)
    assert {p for m in merged for p in m.photos} == {p for g in groups for p in g.photos}
    chance.shuffle(groups)  # type: ignore[attr-defined]
    assert merge_groups(groups) == merged
    assert merge_groups(merged) == merged


def test_the_largest_photo_comes_first() -> None:
    one, other = (
        DuplicateGroup.of({Path("/b"): 5, Path("/a"): 5}),
        DuplicateGroup.of({Path("/a"): 5, Path("/c"): 8}),
    )
    assert one.photos == (Path("/a"), Path("/b"))
    assert merge_groups([one, other]) == [DuplicateGroup((Path("/c"), Path("/a"), Path("/b")), (8, 5, 5))]
