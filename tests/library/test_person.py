from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.errors import InvalidInputError
from setnet.library.person import checked_name, is_id, name_key, new_id

NAMES = [
    "Anna",
    "José María",
    "Nguyễn Thị Ánh",
    "Ólafur Ragnar",
    "Αλέξανδρος",
    "Владимир",
    "გიორგი",
    "Հայկ",
    "אברהם",
    "محمد",
    "علی\u200cرضا",  # noqa: RUF001
    "प्रिया",
    "क्\u200dषमा",
    "தமிழ்",
    "ශ්\u200dරී",
    "ကျော်",
    "សុខ",
    "ᠮᠣᠩᠭᠣᠯ\u180eᠠ",
    "བསྟན་འཛིན",
    "山田\u3000太郎",
    "김철수",
    "𠮷野",
    "\U000323b0",  # a character that is newer than Python 3.11
    "Ọlọ́runtóbi",
    "ʻOkina",  # noqa: RUF001
    "O'Neil-Smith, Jr.",
    "👩\u200d👧",
    "ߒߞߏ",
    "ꦗꦮ",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_every_script_are_kept_as_they_are_written(name: str) -> None:
    assert checked_name(f"  {name} ") == name
    assert name_key(name) == name_key(name.upper()) == name_key(checked_name(name))


def test_marks_of_direction_that_come_along_are_left_out() -> None:
    assert checked_name("\u200fאברהם\u200e") == "אברהם"
    assert name_key("\u200fאברהם") == name_key("אברהם")


BAD = ["", " \u3000", "a\nb", "a\tb", "x" * 201, "a\u202eb", "a\u2066b", "a\ud800", "\u200c\u200d", "\u200ba"]


@pytest.mark.parametrize("name", [*BAD, "a\u2028b", "\ufffe", "a\U0010ffff", "\ufeffa", "a\0"])
def test_what_cannot_be_printed_is_no_name(name: str) -> None:
    with pytest.raises(InvalidInputError, match="printable"):
        checked_name(name)


@given(st.text(max_size=20))
def test_a_name_that_is_kept_is_kept_as_itself_the_second_time(text: str) -> None:
    try:
        name = checked_name(text)
    except InvalidInputError:
        return
    assert checked_name(name) == name
    assert name_key(name) == name_key(text)


def test_ids_are_twelve_digits_and_new_each_time() -> None:
    ids = {new_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(map(is_id, ids))
    assert not any(map(is_id, ["", "0123456789a", "0123456789ABC", "0123456789ag", "0123456789ab\n"]))
