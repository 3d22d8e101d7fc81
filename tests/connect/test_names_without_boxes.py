"""People named by who is in a photo, without a place: Google Takeout, XMP, captions and keywords."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from setnet.connect import import_tags
from setnet.connect.photo_names import takeout_file
from setnet.library import Example, Library
from tests.support.invented_photos import area_of, face_of
from tests.support.tag_files import lightroom, packet

PHOTOS: dict[str, list[int]] = {
    "a.jpg": [1, 2],
    "b.jpg": [3, 1],
    "c.jpg": [2, 3],
    "d.jpg": [1, 9],
    "e.jpg": [2],
    "f.jpg": [3, 2, 1],
    "g.jpg": [1, 8],
    "h.jpg": [3],
}
NAMES = {1: "Anna", 2: "Ben", 3: "Cleo"}  # 8 and 9 pass by


def takeout(
    photo: Path, names: list[str], suffix: str = ".supplemental-metadata.json", text: str = ""
) -> None:
    said = {"title": photo.name, "description": text, "people": [{"name": name} for name in names]}
    photo.with_name(photo.name + suffix).write_text(json.dumps(said))


def names_of(library: Library) -> dict[str, dict[int, str]]:
    """Return the names of confirmed faces: by photo, who each of the invented faces is."""
    found: dict[str, dict[int, str]] = {}
    for person in library.people:
        for label in library.people.labels(person):
            if label.is_match:
                shown = found.setdefault(library.photos.get(str(label.photo_id)).path.name, {})
                shown[round(label.box.x0 / 100)] = person.name
    return found


def test_takeout_names_find_their_faces_over_the_whole_library(
    library: Library, add_photo: Any, tmp_path: Path
) -> None:
    for number, (name, people) in enumerate(PHOTOS.items()):
        add_photo(name, *people)
        photo = next(p for p in library.photos.all_photos() if p.path.name == name).path
        suffix = (".json", ".supplemental-metadata.json")[number % 2]
        takeout(photo, [NAMES[person] for person in people if person in NAMES], suffix)
    done = import_tags(library, dry_run=True)
    assert (done.without_boxes, done.solved, done.new) == (8, 13, 3)
    assert len(library.people) == 0
    done = import_tags(library)
    assert (done.named, done.suggestions) == (13, [])
    expected = {
        name: {person: NAMES[person] for person in people if person in NAMES}
        for name, people in PHOTOS.items()
    }
    assert names_of(library) == expected
    again = import_tags(library)
    assert (again.named, again.known, again.change) == (0, 13, None)
    library.people.undo()
    assert len(library.people) == 0


def test_who_is_always_together_is_a_suggestion(library: Library, add_photo: Any) -> None:
    for name in ("a.jpg", "b.jpg", "c.jpg", "d.jpg"):
        add_photo(name, 1, 2)
        takeout(next(p for p in library.photos.all_photos() if p.path.name == name).path, ["Anna", "Ben"])
    done = import_tags(library)
    assert (done.named, done.without_boxes) == (0, 4)
    assert {(one.photo.name, one.face) for one in done.suggestions} == {
        (name, face) for name in ("a.jpg", "b.jpg", "c.jpg", "d.jpg") for face in (1, 2)
    }
    assert len(library.people) == 0


def test_another_spelling_of_a_saved_name_is_listed(library: Library, add_photo: Any) -> None:
    library.people.add("Anna Schmidt", [Example(face_of(5))])
    add_photo("a.jpg", 1, xmp=lightroom({"Anna Schmitt": area_of(1)}, (1600, 1200)))
    (hint,) = import_tags(library).hints
    assert "'Anna Schmitt' may be another spelling of 'Anna Schmidt'" in hint


def test_a_name_that_is_spelt_in_two_ways_takes_no_face_of_the_other(
    library: Library, add_photo: Any
) -> None:
    for number in range(9):
        add_photo(f"{number}.jpg", 1)
        photo = next(p for p in library.photos.all_photos() if p.path.name == f"{number}.jpg")
        takeout(photo.path, ["Jon Smith" if number < 3 else "John Smith"])
    done = import_tags(library)
    assert [person.name for person in library.people] == ["John Smith"]
    assert (done.named, {one.name for one in done.suggestions}) == (6, {"Jon Smith"})
    (hint,) = done.hints
    assert "'Jon Smith' may be another spelling of 'John Smith'" in hint


def test_saved_people_are_found_in_captions_and_keywords(library: Library, add_photo: Any) -> None:
    for number, name in ((1, "Anna"), (2, "Ben")):
        library.people.add(name, [Example(face_of(number, view)) for view in range(4)])
    dc = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
    caption = (
        f'<rdf:Description rdf:about="" {dc}><dc:description><rdf:Alt><rdf:li xml:lang="x-default">'
        "Anna and Ben at the lake</rdf:li></rdf:Alt></dc:description></rdf:Description>"
    )
    keywords = (
        f'<rdf:Description rdf:about="" {dc}><dc:subject><rdf:Bag><rdf:li>lake</rdf:li><rdf:li>Ben</rdf:li>'
        "</rdf:Bag></dc:subject></rdf:Description>"
    )
    add_photo("caption.jpg", 2, 7, 1, xmp=packet(caption))
    add_photo("keywords.jpg", 2, 1, xmp=packet(keywords))
    add_photo("box.jpg", 1, 2, xmp=lightroom({"Anna": area_of(1)}, (1600, 1200)))
    done = import_tags(library)
    assert names_of(library) == {
        "caption.jpg": {1: "Anna", 2: "Ben"},
        "keywords.jpg": {2: "Ben"},
        "box.jpg": {1: "Anna"},
    }
    assert done.solved == 3


@pytest.mark.parametrize(
    "text",
    ["[1, 2]", '{"title": 3}', '{"title": "a.jpg", "people": [3, {"name": 4}], "description": []}', "{}"],
)
def test_other_json_says_nothing_and_broken_json_is_named(
    library: Library, add_photo: Any, text: str
) -> None:
    add_photo("a.jpg", 1)
    photo = next(library.photos.all_photos()).path
    photo.with_name("a.jpg.json").write_text(text)
    done = import_tags(library)
    assert (done.without_boxes, done.named, done.unreadable) == (0, 0, [])
    photo.with_name("a.jpg.json").write_text("[" * 100_000)
    (problem,) = import_tags(library).unreadable
    assert "no JSON, or nested too deeply" in problem[1]


def test_a_json_of_a_similar_name_is_not_taken() -> None:
    assert takeout_file("IMG_1.jpg", ["IMG_10.jpg.json", "IMG_1.png.json", "IMG.json"]) is None
    assert takeout_file("IMG_1(2).jpg", ["IMG_1.jpg.json"]) is None
    assert takeout_file("IMG_1(2).jpg", ["IMG_1(2).jpg.json"]) == "IMG_1(2).jpg.json"
    assert takeout_file("IMG_1.jpg", ["IMG_1.jpg.supp(1).json"]) is None
    long = "A photo of all of us at the lake in summer, 201"
    assert takeout_file(f"{long}.jpg", [f"{long[:46]}.json", "A photo.json"]) == f"{long[:46]}.json"
    assert takeout_file(f"{long}(1).jpg", [f"{long[:43]}(1).json"]) == f"{long[:43]}(1).json"
