from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from setnet.library import Library
from setnet.library.inspection import face_sheet, inspect_photo

Portrait = Callable[[str], str]


def test_the_faces_of_a_photo_are_numbered_from_the_left_and_named(
    library: Library, photos: Path, portrait: Portrait, tmp_path: Path
) -> None:
    library.people.add_photos("Cleo", [portrait("P003")])
    seen = inspect_photo(str(photos / "2019" / "three.jpg"), library.path)
    assert [identity.name for identity in seen.names] == ["", "", "Cleo"]
    facts = json.loads(json.dumps(seen.to_dict()))
    assert [face["number"] for face in facts["faces"]] == [1, 2, 3]
    assert facts["faces"][0]["box"][0] < facts["faces"][1]["box"][0] < facts["faces"][2]["box"][0]
    face_sheet(seen, tmp_path / "faces.html")
    page = (tmp_path / "faces.html").read_text(encoding="utf-8")
    assert page.count('class="match"') == 3
    assert "3 faces" in page
    assert ">3  Cleo 0." in page
