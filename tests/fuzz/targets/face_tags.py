"""Face tags of other programs with damage: XMP and Picasa's files; what is read is inside the picture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from setnet.connect.face_regions import FaceRegion, RegionList
from setnet.connect.picasa import picasa_regions
from setnet.connect.xmp import add_regions, regions_in_xmp
from setnet.faces import Box
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import mutated_bytes
from tests.fuzz.target import Function, attempt
from tests.support.tag_files import FACE, acdsee, elements, lightroom, microsoft

SOUND = (
    lightroom({"Anna": FACE}, (1600, 1200)),
    elements({"Anna": FACE}, (1600, 1200)),
    microsoft({"Anna": "0.4, 0.2, 0.2, 0.1"}),
    acdsee("Anna"),
    lightroom({"Anna": FACE}).decode().encode("utf-16"),
)
PICASA = b"[Contacts2]\n1f=Anna;;\n[a.jpg]\nfaces=rect64(3333199980004ccc),1f;rect64(ff),ffffffffffffffff\n"
WORDS = (
    b"<!DOCTYPE a [",
    b'<!ENTITY b "c">',
    b"&b;",
    b"<rdf:li>",
    b"<![CDATA[",
    b"nan",
    b"1e999",
    b"<a>" * 80,
)
ADDED = FaceRegion("Ben", Box(0.1, 0.1, 0.2, 0.2))


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that reads changed tags, and adds a region to them."""

    def run(data: bytes) -> None:
        choices = Choices(data)
        changed = mutated_bytes(choices, choices.pick(SOUND), WORDS)
        attempt(lambda: verify(regions_in_xmp(changed)))
        attempt(lambda: add_to(changed))
        picasa = mutated_bytes(choices, PICASA)
        attempt(lambda: verify(list(picasa_regions(picasa).values())))

    yield run


def verify(lists: list[RegionList]) -> None:
    for x0, y0, x1, y1 in (region.area for found in lists for region in found.regions):
        assert 0 <= x0 < x1 <= 1, "a region outside the picture"
        assert 0 <= y0 < y1 <= 1, "a region outside the picture"


def add_to(before: bytes) -> None:
    """Add a region, and see that nothing else changed."""
    after = add_regions(before, [ADDED], (1600, 1200))
    assert len(after) > len(before), "nothing was added"
    kept = common(before, after) + common(before[::-1], after[::-1])
    assert kept >= len(before), "other bytes changed"


def common(a: bytes, b: bytes) -> int:
    """Return how many bytes two texts begin with in common."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
