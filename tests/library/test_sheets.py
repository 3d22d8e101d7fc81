from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from setnet.errors import InvalidInputError
from setnet.library import Library, LibraryPhoto, PhotoHit, contact_sheet
from setnet.library.sheets import hit_card

Portrait = Callable[[str], str]


def test_a_photo_is_named_with_its_folder(shared: Library, portrait: Portrait, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "2016" / "small.png")
    hit = PhotoHit(LibraryPhoto("1", path, 1, bytes(16), None, 100, 80, ()), 0.5, ())
    assert hit_card(1, hit, shared.search([portrait("P001")], k=1)).name == "2016/small.png"


def test_a_page_holds_everything_and_escapes_names(
    library: Library, photos: Path, portrait: Portrait, tmp_path: Path
) -> None:
    library.people.add_photos("<script>{{cards}}", [portrait("P003")])
    (photos / "2016" / "pair.jpg").unlink()
    contact_sheet(library.search(["<script>{{cards}}"], k=4, at_least=1), tmp_path / "sheet.html")
    page = (tmp_path / "sheet.html").read_text()
    assert (tmp_path / "sheet.html").stat().st_mode & 0o777 == 0o600
    assert "<script" not in page
    assert page.count("<figure>") == 3
    assert page.count('class="match"') == 2
    assert page.count("not there any more") == 1
    assert "http" not in re.sub(r"http-equiv", "", page)
    with pytest.raises(InvalidInputError, match=r"an \.html file"):
        contact_sheet(library.search(["<script>{{cards}}"]), tmp_path / "sheet.pdf")
