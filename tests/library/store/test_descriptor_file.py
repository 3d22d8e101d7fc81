from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.library import read_descriptors
from setnet.library.store.descriptor_file import write_descriptor_file

ROWS = np.eye(3, 5, dtype=np.float32)
LABELS = ["anna", "", "anna"]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write_descriptor_file(tmp_path / "d.npz", ROWS, LABELS, ids=np.arange(3))
    rows, labels = read_descriptors(tmp_path / "d.npz")
    assert np.array_equal(rows, ROWS)
    assert labels.tolist() == LABELS
    assert [file.name for file in tmp_path.iterdir()] == ["d.npz"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"descriptors": ROWS}, "labels"),
        ({"descriptors": ROWS, "labels": LABELS[:2]}, "do not fit"),
        ({"descriptors": ROWS[0], "labels": LABELS}, "do not fit"),
        ({"descriptors": ROWS * np.nan, "labels": LABELS}, "row 0 holds NaN"),
        ({"descriptors": ROWS, "labels": np.array(LABELS, object)}, "not a readable"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, arrays: dict[str, object], message: str) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=message):
        read_descriptors(tmp_path / "bad.npz")


def test_what_is_no_file_or_no_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no such descriptor file"):
        read_descriptors(tmp_path / "absent.npz")
    (tmp_path / "text.npz").write_text("no zip")
    with pytest.raises(InvalidInputError, match="not a readable"):
        read_descriptors(tmp_path / "text.npz")
