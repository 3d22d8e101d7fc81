from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.library import Library

Portrait = Callable[[str], str]


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
