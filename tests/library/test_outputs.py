from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from setnet.errors import InvalidInputError, NotAnIndexError, PhotoError
from setnet.faces import FaceSettings
from setnet.library import Library, LibraryPhoto, contact_sheet
from setnet.library.indexing.describe import describe_photos
from setnet.library.pictures.inspection import draw_faces, seen_in
from setnet.library.store.photo_writer import PhotoWriter

Portrait = Callable[[str], str]
GREEN = (34, 197, 94)


def anywhere(folder: Path, data: bytes) -> bool:
    return any(data in file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_forgotten_photos_leave_no_trace_in_any_file(library: Library, photos: Path) -> None:
    ids = [photo.id for photo in library.catalog.all_photos() if "2016" in str(photo.path)]
    secrets = [library.descriptors(i)[0].tobytes() for i in ids]
    for i in ids:
        library.thumbnail(i)
    thumbnails = sum(1 for _ in (library.path / "thumbnails").glob("*/*"))
    assert all(anywhere(library.path, secret) for secret in secrets)
    assert library.forget([photos / "2016"]) == 2
    assert not any(anywhere(library.path, secret) for secret in secrets)
    assert not anywhere(library.path, b"2016/pair.jpg")
    assert sum(1 for _ in (library.path / "thumbnails").glob("*/*")) == thumbnails - 2
    assert library.catalog.counts().photos == 3
    assert library.check() == []
    assert (photos / "2016" / "pair.jpg").is_file()
    with pytest.raises(InvalidInputError, match="knows no photo"):
        library.forget([photos / "2016"])


def test_a_forgotten_folder_takes_the_folders_inside_it_along(library: Library, photos: Path) -> None:
    library.index([photos.parent], workers=0)
    assert library.folders == [photos.parent, photos]
    assert library.forget([photos.parent]) == 6  # the one that could not be read too
    assert library.folders == []
    assert not anywhere(library.path, bytes(photos))


def test_a_thumbnail_made_while_its_photo_is_forgotten_is_not_kept(library: Library, photos: Path) -> None:
    photo = next(p for p in library.catalog.all_photos() if p.path.stem == "pair")

    def draw(photo: LibraryPhoto, side: int) -> bytes:
        library.forget([photo.path])
        return b"a picture"

    assert library.thumbnail(photo.id, 160, draw) == b"a picture"
    assert not anywhere(library.path, b"a picture")


def test_a_thumbnail_asked_for_while_photos_are_being_forgotten_goes_with_them(
    library: Library, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photo = next(p for p in library.catalog.all_photos() if p.path.stem == "pair")
    remove = PhotoWriter.remove

    def asked_for_meanwhile(writer: PhotoWriter, ids: list[int]) -> None:
        library.thumbnail(photo.id, 160)
        remove(writer, ids)

    monkeypatch.setattr(PhotoWriter, "remove", asked_for_meanwhile)
    library.forget([photo.path])
    assert list((library.path / "thumbnails").glob("*/*")) == []


def test_a_photo_that_breaks_loses_its_thumbnail(library: Library, photos: Path) -> None:
    photo = next(p for p in library.catalog.all_photos() if p.path.stem == "pair")
    library.thumbnail(photo.id)
    photo.path.write_bytes(b"no photo any more")
    library.index(workers=0)
    assert list((library.path / "thumbnails").glob("*/*")) == []


def test_a_library_without_its_index_says_so_and_can_be_forgotten(library: Library, photos: Path) -> None:
    library.close()
    shutil.rmtree(library.path / "index")
    with Library.open(library.path) as damaged:
        with pytest.raises(NotAnIndexError, match="lost its index"):
            damaged.status()
        assert damaged.forget_everything() == 5
    assert not library.path.exists()


def test_forgetting_everything_deletes_the_library_and_no_photo(library: Library, photos: Path) -> None:
    (library.path / "a note of mine.txt").write_text("stays")
    assert library.forget_everything() == 5
    assert [p.name for p in library.path.iterdir()] == ["a note of mine.txt"]
    assert sum(1 for _ in photos.rglob("*.jpg")) == 6


def test_thumbnails_are_upright_small_and_made_once(library: Library, photos: Path, tmp_path: Path) -> None:
    turned = Image.open(photos / "2016" / "pair.jpg").rotate(90, expand=True)
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.save(photos / "turned.jpg", exif=exif)
    library.index(workers=0)
    photo = next(p for p in library.catalog.all_photos() if p.path.name == "turned.jpg")
    first = library.thumbnail(photo.id, 200)
    picture = tmp_path / "t.jpg"
    picture.write_bytes(first)
    assert Image.open(picture).size == (200, 111)
    (photos / "turned.jpg").unlink()
    assert library.thumbnail(photo.id, 200) == first
    with pytest.raises(PhotoError, match=r"turned\.jpg"):
        library.thumbnail(photo.id, 201)
    with pytest.raises(InvalidInputError, match="16 to 4096"):
        library.thumbnail(photo.id, 5000)
    library.index(workers=0, prune=True)
    assert list((library.path / "thumbnails").glob("*/*")) == []


def test_an_export_is_a_descriptor_file_with_labels_of_saved_people(
    library: Library, tmp_path: Path, portrait: Portrait
) -> None:
    library.add_person("Cleo", [portrait("P003")])
    written = library.export(tmp_path / "all.npz")
    assert (written.photos, written.faces, written.labelled) == (5, 8, 3)
    with np.load(tmp_path / "all.npz", allow_pickle=False) as data:
        assert data["descriptors"].shape == (8, 128)
        assert data["descriptors"].dtype == np.float32
        assert sorted(data["labels"].tolist()).count("Cleo") == 3
        assert data["counts"].sum() == 8
        three = next(i for i, path in enumerate(data["paths"]) if path.endswith("three.jpg"))
        start = data["counts"][:three].sum()
        assert data["labels"][start : start + 3].tolist() == ["", "", "Cleo"]
    with pytest.raises(InvalidInputError, match="npz"):
        library.export(tmp_path / "all.csv")


def test_describe_labels_the_main_face_by_its_folder(album: Path, tmp_path: Path) -> None:
    done = describe_photos([album], tmp_path / "d.npz", FaceSettings(), all_faces=True, workers=0)
    assert (done.photos, done.descriptors, done.labels) == (6, 8, 2)
    assert [p.name for p in done.without_face] == ["nobody.jpg"]
    assert [p.name for p, _ in done.failed] == ["broken.jpg"]
    with np.load(tmp_path / "d.npz", allow_pickle=False) as data:
        assert sorted(data["labels"].tolist()) == ["", "", "", "", "2016", "2016", "2019", "2019"]
        assert len(data["paths"]) == len(data["boxes"]) == 8


def test_a_sheet_shows_matched_faces_in_green(shared: Library, portrait: Portrait, tmp_path: Path) -> None:
    answer = shared.find([portrait("P001"), portrait("P003")], k=3)
    contact_sheet(answer, tmp_path / "sheet.png")
    sheet = np.asarray(Image.open(tmp_path / "sheet.png"))
    assert sheet.shape[1] > 1000
    assert (np.abs(sheet.astype(int) - GREEN).max(axis=2) < 12).sum() > 1000


def test_a_page_holds_everything_and_escapes_names(
    library: Library, photos: Path, portrait: Portrait, tmp_path: Path
) -> None:
    library.add_person("<script>{{cards}}", [portrait("P003")])
    (photos / "2016" / "pair.jpg").unlink()
    contact_sheet(library.find(["<script>{{cards}}"], k=4, at_least=1), tmp_path / "sheet.html")
    page = (tmp_path / "sheet.html").read_text()
    assert "<script" not in page
    assert page.count("<figure>") == 3
    assert page.count('class="match"') == 3
    assert page.count("not there any more") == 1
    assert "http" not in re.sub(r"http-equiv", "", page)
    with pytest.raises(InvalidInputError, match=r"\.png, \.jpg or \.html"):
        contact_sheet(library.find(["<script>{{cards}}"]), tmp_path / "sheet.pdf")


def test_the_faces_of_a_photo_are_numbered_from_the_left_and_named(
    library: Library, photos: Path, portrait: Portrait, tmp_path: Path
) -> None:
    library.add_person("Cleo", [portrait("P003")])
    seen = seen_in(str(photos / "2019" / "three.jpg"), library.path)
    assert [name for name, _ in seen.names] == ["", "", "Cleo"]
    facts = json.loads(json.dumps(seen.to_dict()))
    assert [face["number"] for face in facts["faces"]] == [1, 2, 3]
    assert facts["faces"][0]["box"][0] < facts["faces"][1]["box"][0] < facts["faces"][2]["box"][0]
    draw_faces(seen, tmp_path / "drawn.png")
    drawn = np.asarray(Image.open(tmp_path / "drawn.png"))
    assert drawn.shape == (300, 810, 3)
    assert (np.abs(drawn.astype(int) - GREEN).max(axis=2) < 12).sum() > 200
