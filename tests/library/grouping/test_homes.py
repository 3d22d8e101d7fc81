"""From clusters to groups: laws that hold for whatever was clustered and said."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from setnet.library.grouping import KnownLabels, assign_groups

FACES, PEOPLE = 12, 3
NUMBERS = st.integers(0, 4)


@st.composite
def identities(draw: st.DrawFn) -> KnownLabels:
    """Return what may be known of a dozen faces, in groups 1 to 4 of which some are named or hidden."""
    group = np.array(draw(st.lists(NUMBERS, min_size=FACES, max_size=FACES)))
    person_of = np.array([0, *draw(st.lists(st.integers(0, PEOPLE), min_size=4, max_size=4))])
    hidden_of = np.array([False, *draw(st.lists(st.booleans(), min_size=4, max_size=4))])
    label = np.array(draw(st.lists(st.integers(0, PEOPLE), min_size=FACES, max_size=FACES)))
    pairs = st.tuples(st.integers(0, FACES - 1), st.integers(1, PEOPLE))
    refused = [pair for pair in draw(st.sets(pairs, max_size=6)) if label[pair[0]] != pair[1]]
    return KnownLabels(
        group, person_of[group], hidden_of[group], label,
        np.array([face for face, _ in refused], np.int64), np.array([who for _, who in refused], np.int64),
        np.zeros(0, np.int64), np.zeros((0, 4), np.float32),
    )  # fmt: skip


CLUSTERS = st.lists(st.integers(0, 5), min_size=FACES, max_size=FACES).map(np.array)
CLAIMS = st.dictionaries(st.integers(0, 5), st.integers(1, PEOPLE), max_size=3)


def owners(known: KnownLabels, named: dict[int, int]) -> dict[int, int]:
    before = dict(zip(known.group.tolist(), known.person.tolist(), strict=True))
    return {group: who for group, who in before.items() if who} | named


@given(CLUSTERS, CLAIMS, identities())
def test_what_users_said_holds(clusters: np.ndarray, claims: dict[int, int], known: KnownLabels) -> None:
    homes = assign_groups(clusters, claims, known)
    person = owners(known, homes.person)
    assert (homes.group != 0).all()  # every face is in a group
    fixed = known.fixed
    assert (homes.group[fixed > 0] == fixed[fixed > 0]).all()  # named and hidden groups keep their faces
    for face, who in zip(known.refused_face.tolist(), known.refused_person.tolist(), strict=True):
        assert person.get(int(homes.group[face]), 0) != who
    for face in np.flatnonzero(known.label).tolist():
        refused = (known.refused_face == face) & (known.refused_person == known.label[face])
        assert refused.any() or person.get(int(homes.group[face])) == known.label[face]
    for group, who in homes.person.items():  # nobody is renamed
        assert group < 0 or who == person[group]
        assert not ((known.group == group) & (known.person != 0) & (known.person != who)).any()


@given(CLUSTERS)
def test_clusters_of_unknown_faces_become_groups_and_stay_so(clusters: np.ndarray) -> None:
    none = np.zeros(FACES, np.int64)
    nothing = np.zeros(0, np.int64)
    unknown = KnownLabels(
        none, none, none.astype(bool), none, nothing, nothing, nothing, np.zeros((0, 4), np.float32)
    )
    first = assign_groups(clusters, {}, unknown).group
    assert len(set(zip(first.tolist(), clusters.tolist(), strict=True))) == len(set(clusters.tolist()))
    stored = KnownLabels(
        -first, none, none.astype(bool), none, nothing, nothing, nothing, np.zeros((0, 4), np.float32)
    )
    assert (assign_groups(clusters, {}, stored).group == -first).all()


def test_an_id_goes_where_most_of_its_faces_are() -> None:
    none, nothing = np.zeros(7, np.int64), np.zeros(0, np.int64)
    known = KnownLabels(
        np.array([5, 5, 5, 6, 6, 7, 0]), none, none.astype(bool), none, nothing, nothing, nothing,
        np.zeros((0, 4), np.float32),
    )  # fmt: skip
    clusters = np.array([0, 0, 1, 1, 1, 1, 2])
    assert assign_groups(clusters, {}, known).group.tolist() == [5, 5, 6, 6, 6, 6, -1]
