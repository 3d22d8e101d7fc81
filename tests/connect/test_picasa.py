"""Face tags in Picasa's files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.connect.picasa import LARGEST, picasa_regions
from setnet.errors import InvalidInputError

INI = """\
[Picasa]
name=Holiday
[Contacts2]
a1b2c3d4e5f60708=Anna;;
[Contacts]
1f=Ben Berg;ben@example.org
[IMG_1.JPG]
rotate=rotate(1)
faces=rect64(3333199980004ccc),a1b2c3d4e5f60708;rect64(199980004ccc),ffffffffffffffff
[img_2.jpg]
faces=rect64(80008000ffffffff),1F;rect64(80008000ffffffff),99
[img_3.jpg]
star=yes
"""


def test_faces_are_read_with_their_contacts() -> None:
    found = picasa_regions(INI.encode())
    assert set(found) == {"img_1.jpg", "img_2.jpg"}
    named, unnamed = found["img_1.jpg"].regions
    assert (named.name, unnamed.name) == ("Anna", "")
    assert [round(x, 3) for x in named.area] == [0.2, 0.1, 0.5, 0.3]
    assert unnamed.area.x0 == 0  # leading zeros are not written
    assert found["img_2.jpg"].regions[0].name == "Ben Berg"
    assert found["img_2.jpg"].regions[0].area.y1 == 1


def test_a_contact_whose_name_is_elsewhere_is_a_problem() -> None:
    assert "contact 99" in picasa_regions(INI.encode())["img_2.jpg"].problems[0]


def test_a_rectangle_that_is_none_is_a_problem() -> None:
    found = picasa_regions(b"[Contacts]\n1=Anna\n[a.jpg]\nfaces=rect64(ffffffff00000000),1\n")["a.jpg"]
    assert not found.regions
    assert "'Anna'" in found.problems[0]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_names_are_read_in_utf_8_and_in_the_code_page_of_windows(encoding: str) -> None:
    text = "[Contacts2]\n1=Zoë;;\n[a.jpg]\nfaces=rect64(3333199980004ccc),1\n"
    assert picasa_regions(text.encode(encoding))["a.jpg"].regions[0].name == "Zoë"


def test_a_file_that_is_far_too_large_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="larger"):
        picasa_regions(bytes(LARGEST + 1))


@given(st.binary(max_size=200), st.text(max_size=100))
def test_any_bytes_are_read(noise: bytes, text: str) -> None:
    picasa_regions(noise)
    picasa_regions(b"[a.jpg]\nfaces=" + text.encode("utf-8", "replace"))
