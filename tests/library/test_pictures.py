from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from setnet.errors import InvalidInputError, PhotoError
from setnet.library import Library


def test_a_photo_that_breaks_loses_its_thumbnail(library: Library, photos: Path) -> None:
    photo = next(p for p in library.photos.all_photos() if p.path.stem == "pair")
    library.photos.thumbnail(photo.id)
    photo.path.write_bytes(b"no photo any more")
    library.index(workers=0)
    assert list((library.path / "thumbnails").glob(f"*/{photo.id}-*")) == []


def test_thumbnails_are_upright_small_and_made_once(library: Library, photos: Path, tmp_path: Path) -> None:
    turned = Image.open(photos / "2016" / "pair.jpg").rotate(90, expand=True)
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.save(photos / "turned.jpg", exif=exif)
    library.index(workers=0)
    photo = next(p for p in library.photos.all_photos() if p.path.name == "turned.jpg")
    first = library.photos.thumbnail(photo.id, 200)
    picture = tmp_path / "t.jpg"
    picture.write_bytes(first)
    assert Image.open(picture).size == (200, 111)
    (photos / "turned.jpg").unlink()
    assert library.photos.thumbnail(photo.id, 200) == first
    with pytest.raises(PhotoError, match=r"turned\.jpg"):
        library.photos.thumbnail(photo.id, 201)
    with pytest.raises(InvalidInputError, match="16 to 4096"):
        library.photos.thumbnail(photo.id, 5000)
    library.index(workers=0, prune=True)
    assert list((library.path / "thumbnails").glob(f"*/{photo.id}-*")) == []
