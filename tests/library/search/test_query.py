from __future__ import annotations

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.library import Conditions, Library, PhotoQuery


def test_options_beside_people_mean_the_same_query(shared: Library) -> None:
    photo = next(p for p in shared.photos.all_photos() if len(p.faces) == 3)
    people = list(shared.photos.descriptors(photo.id)[:2])
    whole = shared.search(PhotoQuery(people, k=2, at_least=1, mode="fast"))
    assert whole.hits == shared.search(people, k=2, at_least=1, mode="fast").hits
    assert list(whole) == list(whole.hits)
    with pytest.raises(InvalidInputError, match="give k in the PhotoQuery"):
        shared.search(PhotoQuery(people), k=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"people": []}, "nobody to look for"),
        ({"people": ["anna"], "at_least": 2}, "at least 2 of 1 people"),
        ({"people": ["anna"], "mode": "tags"}, "valid are 'exact', 'fast', 'set'"),
    ],
)
def test_a_query_that_cannot_be_met_is_refused_before_any_photo_is_opened(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        PhotoQuery(**options)  # type: ignore[arg-type]


def test_matches_of_set_mode_are_those_of_exact_mode(shared: Library) -> None:
    photo = next(p for p in shared.photos.all_photos() if len(p.faces) == 3)
    people = [np.asarray(d) for d in shared.photos.descriptors(photo.id)]
    exact = {hit.photo.id: hit.matches for hit in shared.search(people, k=5)}
    by_set = shared.search(people, k=5, mode="set")
    assert by_set
    assert all([m.face for m in hit.matches] == [m.face for m in exact[hit.photo.id]] for hit in by_set)


def test_a_folder_that_no_file_system_has_is_refused(shared: Library) -> None:
    with pytest.raises(InvalidInputError, match="no path"):
        shared.search([np.ones(shared.dim, np.float32)], conditions=Conditions(folder="~nobody\0"))
