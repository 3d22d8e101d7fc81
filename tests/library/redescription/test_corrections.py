"""Corrections of people outlive describing a library anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from setnet.faces import write_model_entry
from setnet.library import Library, LibraryPhoto
from small_models import write_small_model


def test_verdicts_ids_and_undo_outlive_another_model(
    library: Library, portrait: Callable[[str], str], tmp_path: Path
) -> None:
    photos: dict[str, LibraryPhoto] = {photo.path.name: photo for photo in library.catalog.all_photos()}
    library.add_person("Anna", [portrait("P001"), portrait("P003")])
    library.people.confirm("Anna", photos["pair.jpg"].id, 0)
    library.people.refuse("Anna", photos["three.jpg"].id, 2)
    library.people.remove_examples("Anna", [2])
    anna = library.people.get("Anna")
    verdicts = [(v.says, v.photo_id, v.face) for v in library.people.verdicts("Anna")]
    history = [change.summary for change in library.people.history()]
    library.close()

    model = write_small_model(tmp_path / "small.onnx")
    calibration = {"w": 20.0, "b": -8.0}
    small = str(write_model_entry(model, name="small", dim=24, calibration=calibration))
    Library.redescribe(library.path, small, workers=0)

    with Library.open(library.path) as again:
        assert again.check() == []
        assert (again.people.get("Anna").id, again.people.get("Anna").examples) == (anna.id, anna.examples)
        kept = again.people.verdicts("Anna")
        assert [(v.says, v.photo_id, v.face) for v in kept] == verdicts
        for verdict in kept:
            assert verdict.photo_id is not None
            described = again.descriptors(verdict.photo_id)[verdict.face]
            np.testing.assert_allclose(verdict.descriptor, described, atol=1e-6)
        assert [change.summary for change in again.people.history()] == history
        again.people.undo()
        assert again.people.descriptors("Anna").shape == (anna.examples + 1, 24)
        assert again.check() == []
