"""Pictures of Chinese characters in many typefaces: thousands of identities, and nobody's face.

A character is an identity, and its picture in a typeface, slightly distorted, a photo of it. Characters can
be kept for tests that no training has seen, and whole typefaces too.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from setnet.errors import TrainingError
from setnet.train.backbones import InputSpec
from setnet.train.faces import FaceSource, Pixels
from setnet.train.loop import SECONDS_BETWEEN_LINES
from setnet.train.settings import AugmentSettings

FONTS = Path("/usr/share/fonts")
MIN_CHARACTERS = 4000  # of a typeface, or it is left out
CANVAS = 64  # pixels a character is drawn on before it is distorted
DRAWN = 52  # pixels of its em square there
SAME = 0.95  # mean correlation from which two typefaces are taken for one
RELATED = 0.9  # mean correlation from which two typefaces are taken for one family
SAMPLED = 120  # characters that two typefaces are compared by
logger = logging.getLogger(__name__)
Pictures = NDArray[np.uint8]


@cache
def kanji() -> tuple[str, ...]:
    """Return the 6,355 characters of JIS X 0208, in its order.

    >>> len(kanji()), kanji()[0]
    (6355, '亜')
    """
    places = [bytes([0xA0 + row, 0xA0 + cell]) for row in range(16, 85) for cell in range(1, 95)]
    decoded = (place.decode("euc_jp", "ignore") for place in places)
    return tuple(character for character in decoded if character)


@cache
def _choice() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("typefaces.toml").read_text(encoding="utf-8"))


def font_packages() -> list[str]:
    """Return the Debian packages whose typefaces are drawn."""
    return list(_choice()["packages"])


@dataclass(frozen=True)
class Typeface:
    """A typeface in a font file, and which of the characters it has."""

    name: str
    family: str
    path: Path
    number: int
    characters: frozenset[str]

    def drawings(self, characters: Sequence[str]) -> Iterator[Pictures]:
        """Yield each character, white on black, in the middle of a canvas; black where it is empty."""
        from PIL import ImageFont

        font = ImageFont.truetype(str(self.path), DRAWN, index=self.number)
        for character in characters:
            canvas = np.zeros((CANVAS, CANVAS), np.uint8)
            mask = font.getmask(character, "L")
            width, height = (min(side, CANVAS) for side in mask.size)
            if width and height:
                drawn = np.asarray(mask, np.uint8).reshape(mask.size[::-1])[:height, :width]
                left, top = (CANVAS - width) // 2, (CANVAS - height) // 2
                canvas[top : top + height, left : left + width] = drawn
            yield canvas


def installed_typefaces(fonts: Path = FONTS) -> list[Typeface]:
    """Return the typefaces with enough of the characters, sorted by name, without those left out."""
    found: dict[str, Typeface] = {}
    for path in sorted(fonts.rglob("*")):
        if path.suffix.lower() in (".ttf", ".otf", ".ttc", ".otc"):
            for typeface in _typefaces_in(path):
                found.setdefault(typeface.name, typeface)
    return [found[name] for name in sorted(found)]


def _typefaces_in(path: Path) -> Iterator[Typeface]:
    from fontTools.ttLib import TTCollection, TTFont, TTLibError

    logging.getLogger("fontTools").setLevel(logging.ERROR)  # it remarks on tables that are not read here
    try:
        collection = path.suffix.lower() in (".ttc", ".otc")
        number = len(TTCollection(str(path), lazy=True)) if collection else 1
        for i in range(number):
            with TTFont(str(path), fontNumber=i if collection else -1, lazy=True) as font:
                names, table = font["name"], font.getBestCmap() or {}
                family, style = names.getBestFamilyName() or path.stem, names.getBestSubFamilyName() or ""
                own = frozenset(character for character in kanji() if ord(character) in table)
            if len(own) >= MIN_CHARACTERS and not any(part in family for part in _choice()["left_out"]):
                yield Typeface(f"{family} {style}".strip(), family, path, i, own)
    except (TTLibError, OSError, KeyError, AssertionError) as error:  # a font we cannot read is one font less
        logger.info("%s: left out (%s)", path, error)


def different_typefaces(typefaces: Sequence[Typeface]) -> list[Typeface]:
    """Return the typefaces that look different; of those that share their drawings, the first.

    Families are joined where their drawings are alike, whatever their names: a typeface and its regional
    editions, weights and derivatives are one family.
    """
    drawn, rows = _sample_drawings(typefaces)
    alike = np.einsum("aij,bij->ab", rows, rows) / max(1, rows.shape[1])
    names = np.array([typeface.family for typeface in drawn], np.str_)
    number, family = connected_components((alike >= RELATED) | (names[:, None] == names), directed=False)
    first = [str(names[np.flatnonzero(family == i)[0]]) for i in range(number)]
    kept: list[int] = []
    for i in range(len(drawn)):
        if not (alike[i, kept] >= SAME).any():
            kept.append(i)
    return [replace(drawn[i], family=first[family[i]]) for i in kept]


def _sample_drawings(typefaces: Sequence[Typeface]) -> tuple[list[Typeface], NDArray[np.float32]]:
    """Return the typefaces that can be drawn, with small unit-length pictures of characters all have."""
    shared = frozenset.intersection(*(t.characters for t in typefaces)) if typefaces else frozenset()
    sample = [c for c in kanji() if c in shared]
    sample = sample[:: max(1, len(sample) // SAMPLED)]
    drawn: list[Typeface] = []
    rows: list[NDArray[np.float32]] = []
    for typeface in typefaces:
        try:
            drawings = list(typeface.drawings(sample))
        except OSError as error:  # of the program inside a font that fits strokes to pixels
            logger.info("%s: left out (%s)", typeface.name, error)
            continue
        small = [cv2.resize(drawing, (16, 16), interpolation=cv2.INTER_AREA) for drawing in drawings]
        row = np.reshape(small, (len(small), 256)).astype(np.float32)
        row -= row.mean(axis=1, keepdims=True)
        row /= np.maximum(np.linalg.norm(row, axis=1, keepdims=True), 1e-6)
        drawn.append(typeface)
        rows.append(row)
    return drawn, np.reshape(rows, (len(rows), len(sample), 256)).astype(np.float32)


def distort(drawing: Pictures, size: int, rng: np.random.Generator) -> Pictures:
    """Return a drawing as a small photo: turned, sheared, shifted, blurred, in other greys, with noise."""
    angle, shear = rng.normal(0, 0.06), rng.normal(0, 0.06)
    scale = size / CANVAS * rng.uniform(0.85, 1.08)
    turn = np.array([[np.cos(angle), shear - np.sin(angle)], [np.sin(angle), np.cos(angle)]]) * scale
    shift = size / 2 + rng.uniform(-0.04, 0.04, 2) * size - turn @ [CANVAS / 2, CANVAS / 2]
    soft = cv2.GaussianBlur(drawing, (0, 0), CANVAS / size * rng.uniform(0.4, 0.8))
    moved = cv2.warpAffine(soft, np.column_stack([turn, shift]), (size, size), flags=cv2.INTER_LINEAR)
    paper, ink = rng.uniform(180, 250), rng.uniform(0, 90)
    grey = paper + (ink - paper) * (moved / 255.0) + rng.normal(0, 7.0, (size, size))
    return np.asarray(np.clip(grey, 0, 255), np.uint8)


@dataclass(frozen=True, eq=False)
class Glyphs:
    """Pictures of characters, mapped from a file.

    Attributes
    ----------
    pictures
        (n, size, size) uint8.
    characters, typefaces
        (n,) which character of `kanji` and which of `names` each picture shows.
    names, families
        The typefaces, and the family that each belongs to.
    checksum
        SHA-256 of the pictures.
    """

    pictures: Pictures
    characters: NDArray[np.int64]
    typefaces: NDArray[np.int64]
    names: tuple[str, ...]
    families: tuple[str, ...]
    checksum: str


def load_glyphs(folder: Path, size: int, fonts: Path = FONTS, seed: int = 0) -> Glyphs:
    """Return the pictures kept in `folder`, drawn first where they are not there; refuse a damaged file."""
    facts_file = folder / "glyphs.json"
    if not facts_file.is_file():
        _render(folder, size, different_typefaces(installed_typefaces(fonts)), seed)
    facts = json.loads(facts_file.read_text(encoding="utf-8"))
    pictures = np.load(folder / "pictures.npy", mmap_mode="r", allow_pickle=False)
    where = np.load(folder / "where.npy", allow_pickle=False)
    if pictures.shape[1] != size or facts["seed"] != seed:
        raise TrainingError(
            f"{folder} holds pictures of {pictures.shape[1]} pixels and seed {facts['seed']}, not {size} and "
            f"{seed}: use another folder, or remove this one"
        )
    if _sha256(folder / "pictures.npy") != facts["sha256"]:
        raise TrainingError(f"{folder / 'pictures.npy'} is damaged: remove {folder}, and it is drawn again")
    return Glyphs(
        pictures, where[0], where[1], tuple(facts["typefaces"]), tuple(facts["families"]), facts["sha256"]
    )


def _render(folder: Path, size: int, typefaces: Sequence[Typeface], seed: int) -> None:
    """Draw every character in every typeface and keep the pictures; the file of facts comes last."""
    if len(typefaces) < 4:
        raise TrainingError(
            f"{len(typefaces)} typefaces with Chinese characters are installed, at least 4 are needed: "
            "apt-get install $(python -m studies.claim packages)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [[i for i, c in enumerate(kanji()) if c in t.characters] for t in typefaces]
    total = sum(map(len, numbers))
    pictures = np.lib.format.open_memmap(
        folder / "pictures.npy", "w+", dtype=np.uint8, shape=(total, size, size)
    )
    where = np.empty((2, total), np.int64)
    row, logged = 0, time.monotonic()
    for t, (typeface, own) in enumerate(zip(typefaces, numbers, strict=True)):
        for character, drawing in zip(own, typeface.drawings([kanji()[i] for i in own]), strict=True):
            pictures[row] = distort(drawing, size, np.random.default_rng((seed, t, character)))
            where[:, row] = character, t
            row += 1
        if time.monotonic() - logged > SECONDS_BETWEEN_LINES:
            logged = time.monotonic()
            logger.info("drawing characters: typeface %s of %s", t + 1, len(typefaces))
    pictures.flush()
    np.save(folder / "where.npy", where)
    facts = {
        "typefaces": [t.name for t in typefaces],
        "families": [t.family for t in typefaces],
        "seed": seed,
        "sha256": _sha256(folder / "pictures.npy"),
    }
    part = folder / "glyphs.json.part"
    part.write_text(json.dumps(facts, indent=1, ensure_ascii=False), encoding="utf-8")
    part.replace(folder / "glyphs.json")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class GlyphSource(FaceSource):
    """Some of the pictures of `Glyphs`; the characters are the identities."""

    def __init__(
        self, glyphs: Glyphs, rows: NDArray[np.int64], spec: InputSpec, augment: AugmentSettings
    ) -> None:
        super().__init__(glyphs.characters[rows], spec, augment, "glyphs")
        self._pictures, self._rows = glyphs.pictures, rows

    def pixels(self, index: int) -> Pixels:
        """Return one picture, the same in all three channels."""
        grey = self._pictures[self._rows[index]]
        return np.repeat(grey[:, :, None], 3, axis=2)
