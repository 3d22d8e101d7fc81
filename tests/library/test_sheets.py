from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from setnet.errors import InvalidInputError
from setnet.library import Library, LibraryPhoto, PhotoHit, contact_sheet
from setnet.library.sheets import draw_card, hit_card

Portrait = Callable[[str], str]
GREEN = (34, 197, 94)


def test_a_sheet_shows_matched_faces_in_green(shared: Library, portrait: Portrait, tmp_path: Path) -> None:
    answer = shared.find([portrait("P001"), portrait("P003")], k=3)
    contact_sheet(answer, tmp_path / "sheet.png")
    assert (tmp_path / "sheet.png").stat().st_mode & 0o777 == 0o600
    sheet = np.asarray(Image.open(tmp_path / "sheet.png"))
    assert sheet.shape[1] > 1000
    assert (np.abs(sheet.astype(int) - GREEN).max(axis=2) < 12).sum() > 1000


@pytest.mark.parametrize(
    ("size", "drawn"), [((100, 80), (100, 80)), ((720, 540), (360, 270)), ((1, 600), (1, 270))]
)
def test_a_photo_is_drawn_no_larger_than_it_is_and_named_with_its_folder(
    shared: Library, portrait: Portrait, tmp_path: Path, size: tuple[int, int], drawn: tuple[int, int]
) -> None:
    path = tmp_path / "2016" / "small.png"
    path.parent.mkdir()
    Image.new("RGB", size, (1, 2, 3)).save(path)
    hit = PhotoHit(LibraryPhoto("1", os.fsencode(path), 1, bytes(16), None, *size, ()), 0.5, ())
    card = hit_card(1, hit, shared.find([portrait("P001")], k=1))
    assert draw_card(card, (360, 270)).size == drawn
    assert card.name == "2016/small.png"


def test_a_page_holds_everything_and_escapes_names(
    library: Library, photos: Path, portrait: Portrait, tmp_path: Path
) -> None:
    library.people.add_photos("<script>{{cards}}", [portrait("P003")])
    (photos / "2016" / "pair.jpg").unlink()
    contact_sheet(library.find(["<script>{{cards}}"], k=4, at_least=1), tmp_path / "sheet.html")
    page = (tmp_path / "sheet.html").read_text()
    assert "<script" not in page
    assert page.count("<figure>") == 3
    assert page.count('class="match"') == 2
    assert page.count("not there any more") == 1
    assert "http" not in re.sub(r"http-equiv", "", page)
    with pytest.raises(InvalidInputError, match=r"\.png, \.jpg or \.html"):
        contact_sheet(library.find(["<script>{{cards}}"]), tmp_path / "sheet.pdf")
