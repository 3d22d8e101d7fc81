"""Face regions in XMP as each program writes them, XMP that is meant to do harm, and sidecars of our own."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.connect.face_regions import FaceRegion
from setnet.connect.xmp import add_regions, new_sidecar, parse_xml, regions_in_xmp
from setnet.errors import InvalidInputError
from setnet.faces import Box
from tests.support.tag_files import FACE, acdsee, elements, lightroom, microsoft, packet

PLACE = Box(0.4, 0.2, 0.6, 0.3)  # of FACE


def close(a: Box, b: Box) -> bool:
    return all(math.isclose(x, y, abs_tol=1e-9) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize(
    ("form", "xmp"),
    [
        ("mwg", lightroom({"Anna": FACE}, (1600, 1200))),
        ("mwg", elements({"Anna": FACE}, (1600, 1200))),
        ("acdsee", acdsee("Anna")),
        ("microsoft", microsoft({"Anna": "0.4, 0.2, 0.2, 0.1"})),
        ("microsoft", microsoft({"Anna": "0.4,0.2,0.2,0.1"})),
    ],
)
def test_each_program_s_region_is_the_same_rectangle(form: str, xmp: bytes) -> None:
    (found,) = regions_in_xmp(xmp)
    assert found.form == form
    assert found.size == (None if form == "microsoft" else (1600, 1200))
    ((name, area),) = found.regions
    assert name == "Anna"
    assert close(area, PLACE)
    assert not found.problems


def test_only_faces_count_whatever_else_is_tagged() -> None:
    assert not regions_in_xmp(lightroom({"Rex": FACE}, kind="Pet"))[0].regions
    assert not regions_in_xmp(lightroom({"": FACE}, kind="Focus"))[0].problems
    assert regions_in_xmp(lightroom({"Anna": FACE}, kind=""))[0].regions
    assert not regions_in_xmp(acdsee("Anna", how="denied"))[0].regions
    assert not regions_in_xmp(microsoft({"Anna": ""}))[0].regions


def test_a_region_in_pixels_is_read_by_the_size_of_its_picture() -> None:
    xmp = lightroom({"Anna": (800, 300, 320, 120)}, (1600, 1200))
    (found,) = regions_in_xmp(xmp.replace(b"<mwg-rs:Area ", b'<mwg-rs:Area stArea:unit="pixel" '))
    assert close(found.regions[0].area, PLACE)


def test_utf_16_is_read() -> None:
    text = lightroom({"Zoë": FACE}).decode()
    assert regions_in_xmp(text.encode("utf-16"))[0].regions[0].name == "Zoë"


def test_xmp_without_regions_is_not_even_parsed() -> None:
    assert regions_in_xmp(b"<broken, and about something else") == []
    assert regions_in_xmp(b"") == []


@pytest.mark.parametrize(
    "area",
    [
        ("nan", 0.5, 0.1, 0.1),
        (0.5, "inf", 0.1, 0.1),
        (0.5, 0.5, 0, 0.1),
        (0.5, 0.5, -0.1, 0.1),
        (1.5, 0.5, 0.1, 0.1),
        ("wide", 0.5, 0.1, 0.1),
        ("", 0.5, 0.1, 0.1),
        ("1e999", 0.5, 0.1, 0.1),
    ],
)
def test_what_is_no_rectangle_in_the_picture_is_a_problem_and_the_others_are_read(
    area: tuple[object, object, object, object],
) -> None:
    (found,) = regions_in_xmp(lightroom({"Ben": area, "Anna": FACE}))
    assert [region.name for region in found.regions] == ["Anna"]
    assert len(found.problems) == 1
    assert "'Ben'" in found.problems[0]


def test_a_rectangle_over_the_edge_is_cut_there() -> None:
    (found,) = regions_in_xmp(lightroom({"Anna": (0.0, 0.0, 0.4, 0.2)}))
    assert close(found.regions[0].area, Box(0, 0, 0.2, 0.1))


def test_rectangles_with_too_few_numbers_are_problems() -> None:
    assert regions_in_xmp(microsoft({"Anna": "0.4, 0.2"}))[0].problems


HARMFUL = {
    "entities": b'<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><a>&d;</a>',
    "an external entity": b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
    "an undeclared entity": b"<a>&b;</a>",
    "nesting": b"<a>" * 100_000,
    "many elements": b"<a>" + b"<b/>" * 60_000 + b"</a>",
    "100 MB": b"<a>" + b" " * (100 << 20) + b"</a>",
    "latin-1": b"<a>Zo\xeb</a>",
    "an unknown encoding": b'<?xml version="1.0" encoding="klingon"?><a/>',
    "half a document": b"<a><b>",
    "nothing": b"",
}


@pytest.mark.parametrize("what", HARMFUL)
def test_harmful_documents_are_refused(what: str) -> None:
    mark = b"<!-- schemas/regions/ -->"  # else they are not parsed at all
    for data in (HARMFUL[what], HARMFUL[what] + mark):
        with pytest.raises(InvalidInputError):
            parse_xml(data)


def test_a_document_type_is_refused_in_any_encoding() -> None:
    with pytest.raises(InvalidInputError, match="document type"):
        parse_xml('<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a><a/>'.encode("utf-16"))


@given(st.binary(max_size=300), st.integers(0, 400))
def test_damaged_packets_are_read_or_refused(noise: bytes, at: int) -> None:
    whole = packet("") + lightroom({"Anna": FACE}, (1600, 1200))
    for data in (noise + b"schemas/regions/", whole[:at] + noise + whole[at:], whole[at:] + noise):
        try:
            lists = regions_in_xmp(data)
        except InvalidInputError:
            continue
        for region in (region for found in lists for region in found.regions):
            assert 0 <= region.area.x0 < region.area.x1 <= 1


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
    after = add_regions(before, [BEN], SIZE)
    assert [region.name for region in regions_in_xmp(after)[0].regions] == ["Anna", "Ben"]
    start = after.index(b"      <rdf:li xmlns")
    assert after[:start] + after[start + len(after) - len(before) :] == before


def test_a_list_is_added_where_there_is_none() -> None:
    rating = '<rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Rating="5"/>'
    before = packet(f"<!-- mine -->{rating}")
    after = add_regions(before, [BEN], SIZE)
    assert regions_in_xmp(after)[0].regions[0].name == "Ben"
    assert list(regions_in_xmp(after)[0].size or ()) == list(SIZE)
    assert b"<!-- mine -->" + rating.encode() in after
    assert after.endswith(b'<?xpacket end="w"?>')


def test_other_prefixes_and_self_closing_lists_do_no_harm() -> None:
    before = lightroom({"Anna": FACE}, SIZE).replace(b"rdf:", b"r:").replace(b"xmlns:rdf", b"xmlns:r")
    assert len(regions_in_xmp(add_regions(before, [BEN], SIZE))[0].regions) == 2
    empty = lightroom({}, SIZE).replace(b"<rdf:Bag></rdf:Bag>", b"<rdf:Bag/>")
    with pytest.raises(InvalidInputError, match="left as it is"):
        add_regions(empty, [BEN], SIZE)


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
        add_regions(data, [BEN], SIZE)
