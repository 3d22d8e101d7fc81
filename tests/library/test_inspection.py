from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from setnet.library import Library
from setnet.library.inspection import draw_faces, inspect_photo

Portrait = Callable[[str], str]
GREEN = (34, 197, 94)


def test_the_faces_of_a_photo_are_numbered_from_the_left_and_named(
    library: Library, photos: Path, portrait: Portrait, tmp_path: Path
) -> None:
    library.people.add_photos("Cleo", [portrait("P003")])
    seen = inspect_photo(str(photos / "2019" / "three.jpg"), library.path)
    assert [identity.name for identity in seen.names] == ["", "", "Cleo"]
    facts = json.loads(json.dumps(seen.to_dict()))
    assert [face["number"] for face in facts["faces"]] == [1, 2, 3]
    assert facts["faces"][0]["box"][0] < facts["faces"][1]["box"][0] < facts["faces"][2]["box"][0]
    draw_faces(seen, tmp_path / "drawn.png")
    drawn = np.asarray(Image.open(tmp_path / "drawn.png"))
    assert drawn.shape == (300, 810, 3)
    assert (np.abs(drawn.astype(int) - GREEN).max(axis=2) < 12).sum() > 200
