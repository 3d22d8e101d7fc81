from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.errors import InvalidInputError
from setnet.web.state.cursors import Cursors, Place, digest_of

DIGEST = digest_of("a query")


@given(st.integers(0, 20_000), st.integers(0, 2**63))
def test_a_cursor_keeps_its_place(offset: int, commit: int) -> None:
    cursors = Cursors()
    place = Place(offset, commit)
    assert cursors.place_in(cursors.at(place, DIGEST), DIGEST) == place


@given(st.integers(0, 28 * 8 - 1))
def test_a_cursor_with_any_bit_changed_is_refused(bit: int) -> None:
    cursors = Cursors()
    data = bytearray(base64.urlsafe_b64decode(cursors.at(Place(50, 7), DIGEST)))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(InvalidInputError, match="start again"):
        cursors.place_in(base64.urlsafe_b64encode(data).decode(), DIGEST)


@given(st.text(max_size=60) | st.binary(max_size=40).map(lambda b: base64.urlsafe_b64encode(b).decode()))
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="start again"):
        Cursors().place_in(text, DIGEST)


def test_a_cursor_fits_its_own_query_and_server_only() -> None:
    cursors = Cursors()
    cursor = cursors.at(Place(50, 7), DIGEST)
    with pytest.raises(InvalidInputError, match="does not belong to this query"):
        cursors.place_in(cursor, digest_of("another query"))
    with pytest.raises(InvalidInputError, match="last start"):
        Cursors().place_in(cursor, DIGEST)
