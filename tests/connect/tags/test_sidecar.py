"""Sidecars with face regions: new ones, and regions added to those of other programs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.connect.tags.region_list import FaceRegion
from setnet.connect.tags.sidecar import new_sidecar, with_regions
from setnet.connect.tags.xmp_regions import regions_in_xmp
from setnet.errors import InvalidInputError
from setnet.faces import Box
from tag_files import FACE, elements, lightroom, packet

SIZE = (1600, 1200)
BEN = FaceRegion("Ben", Box(0.1, 0.1, 0.2, 0.2))
printable = st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp", "Cn")), min_size=1)
fraction = st.floats(0, 0.5)


@given(printable.filter(lambda name: name == name.strip()), fraction, fraction, st.floats(0.01, 0.5))
def test_what_is_written_is_read(name: str, x: float, y: float, side: float) -> None:
    written = FaceRegion(name, Box(x, y, x + side, y + side))
    (found,) = regions_in_xmp(new_sidecar([written], SIZE))
    assert list(found.size or ()) == list(SIZE)
    assert not found.problems
    assert found.regions[0].name == name
    assert found.regions[0].area == pytest.approx(written.area, abs=2e-6)


@pytest.mark.parametrize("form", [lightroom, elements])
def test_regions_are_added_to_a_list_and_every_other_byte_stays(form: object) -> None:
    before: bytes = form({"Anna": FACE}, SIZE)  # type: ignore[operator]
    after = with_regions(before, [BEN], SIZE)
    assert [region.name for region in regions_in_xmp(after)[0].regions] == ["Anna", "Ben"]
    start = after.index(b"      <rdf:li xmlns")
    assert after[:start] + after[start + len(after) - len(before) :] == before


def test_a_list_is_added_where_there_is_none() -> None:
    rating = '<rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Rating="5"/>'
    before = packet(f"<!-- mine -->{rating}")
    after = with_regions(before, [BEN], SIZE)
    assert regions_in_xmp(after)[0].regions[0].name == "Ben"
    assert list(regions_in_xmp(after)[0].size or ()) == list(SIZE)
    assert b"<!-- mine -->" + rating.encode() in after
    assert after.endswith(b'<?xpacket end="w"?>')


def test_other_prefixes_and_self_closing_lists_do_no_harm() -> None:
    before = lightroom({"Anna": FACE}, SIZE).replace(b"rdf:", b"r:").replace(b"xmlns:rdf", b"xmlns:r")
    assert len(regions_in_xmp(with_regions(before, [BEN], SIZE))[0].regions) == 2
    empty = lightroom({}, SIZE).replace(b"<rdf:Bag></rdf:Bag>", b"<rdf:Bag/>")
    with pytest.raises(InvalidInputError, match="left as it is"):
        with_regions(empty, [BEN], SIZE)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<broken",
        b'<!DOCTYPE a [<!ENTITY b "c">]><a/>',
        b"<a/>",
        lightroom({"Anna": FACE}).decode().encode("utf-16"),
        b'<?xml version="1.0" encoding="iso-8859-1"?>' + packet(""),
    ],
)
def test_documents_without_a_safe_place_are_left_alone(data: bytes) -> None:
    with pytest.raises(InvalidInputError):
        with_regions(data, [BEN], SIZE)
