from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

from setnet.errors import TrainingError
from studies import glyphs
from studies.glyphs import installed_typefaces, kanji, load_glyphs

SOME = kanji()[:24]


def make_font(path: Path, family: str, bend: int, characters: str = "".join(SOME)) -> None:
    """Write a font whose characters are bars, the same for every family but for how they are bent."""
    names = [".notdef", *(f"c{ord(c)}" for c in characters)]
    drawn = {}
    for number, name in enumerate(names):
        pen = TTGlyphPen(None)
        for bar in range(4 if number else 0):
            x, y = np.random.default_rng((number, bar)).integers(50, 700, 2).tolist()
            pen.moveTo((x, y))
            pen.lineTo((x + bend, y + 250))
            pen.lineTo((x + bend + 120, y + 250))
            pen.lineTo((x + 120, y))
            pen.closePath()
        drawn[name] = pen.glyph()
    font = FontBuilder(1000, isTTF=True)
    font.setupGlyphOrder(names)
    font.setupCharacterMap({ord(c): f"c{ord(c)}" for c in characters})
    font.setupGlyf(drawn)
    font.setupHorizontalMetrics(dict.fromkeys(names, (1000, 0)))
    font.setupHorizontalHeader(ascent=900, descent=-100)
    font.setupNameTable({"familyName": family, "styleName": "Regular"})
    font.setupPost()
    font.save(path)


@pytest.fixture
def fonts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(glyphs, "MIN_CHARACTERS", 10)
    folder = tmp_path / "fonts"
    folder.mkdir()
    for number, bend in enumerate((-200, -100, 0, 100, 200)):
        make_font(folder / f"{number}.ttf", f"Bars {number}", bend)
    make_font(folder / "copy.ttf", "Copied", 0)
    make_font(folder / "latin.ttf", "Latin", 0, "abc")
    make_font(folder / "dots.ttf", "DotGothic16", 50)
    (folder / "broken.ttf").write_bytes(b"no font")
    return folder


def test_jis_x_0208_has_6355_characters() -> None:
    assert len(kanji()) == len(set(kanji())) == 6355
    assert (kanji()[0], kanji()[-1]) == ("亜", "熙")


def test_typefaces_are_those_with_enough_characters_that_look_different(fonts: Path) -> None:
    found = installed_typefaces(fonts)
    assert [t.family for t in found] == [*(f"Bars {i}" for i in range(5)), "Copied"]
    kept = [t.family for t in glyphs.different_typefaces(found)]
    assert kept == [f"Bars {i}" for i in range(5)], "the copy is the third once more"


def test_typefaces_that_look_alike_are_one_family_whatever_their_names(fonts: Path) -> None:
    make_font(fonts / "cousin.ttf", "Cousin", 45)
    kept = {t.name: t.family for t in glyphs.different_typefaces(installed_typefaces(fonts))}
    assert kept["Cousin Regular"] == kept["Bars 2 Regular"] != kept["Bars 0 Regular"]


def test_pictures_are_drawn_once_and_kept(fonts: Path, tmp_path: Path) -> None:
    drawn = load_glyphs(tmp_path / "glyphs", 20, fonts)
    assert drawn.pictures.shape == (5 * len(SOME), 20, 20)
    assert sorted(set(drawn.characters.tolist())) == list(range(len(SOME)))
    assert all((drawn.pictures[i].std() > 10) for i in range(0, len(drawn.pictures), 7)), "something is drawn"
    again = load_glyphs(tmp_path / "glyphs", 20, tmp_path / "no-fonts-needed")
    assert again.checksum == drawn.checksum
    other = load_glyphs(tmp_path / "other", 20, fonts)
    assert other.checksum == drawn.checksum, "the same fonts and seed give the same pictures"
    with pytest.raises(TrainingError, match="not 24 and 0"):
        load_glyphs(tmp_path / "glyphs", 24, fonts)


def test_a_character_looks_more_like_itself_than_like_others(fonts: Path, tmp_path: Path) -> None:
    drawn = load_glyphs(tmp_path / "glyphs", 20, fonts)
    rows = drawn.pictures.reshape(len(drawn.pictures), -1).astype(np.float64)
    rows -= rows.mean(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    alike = rows @ rows.T
    same = drawn.characters[:, None] == drawn.characters[None]
    other = drawn.typefaces[:, None] != drawn.typefaces[None]
    assert alike[same & other].mean() > alike[~same & other].mean() + 0.2


def test_a_damaged_file_is_refused(fonts: Path, tmp_path: Path) -> None:
    load_glyphs(tmp_path / "glyphs", 20, fonts)
    with (tmp_path / "glyphs" / "pictures.npy").open("r+b") as file:
        file.seek(1000)
        file.write(b"\x00\xff" * 8)
    with pytest.raises(TrainingError, match="damaged"):
        load_glyphs(tmp_path / "glyphs", 20, fonts)


def test_without_typefaces_the_message_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="apt-get install"):
        load_glyphs(tmp_path / "glyphs", 20, tmp_path)
