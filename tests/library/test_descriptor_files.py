"""Descriptors written to a file are read as they were."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.library import Library, read_descriptors
from setnet.library.descriptor_files import write_descriptor_file

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
        ({"descriptors": np.empty((0, 2**60), np.uint8), "labels": np.empty(0, "U1")}, "do not fit"),
        ({"descriptors": np.empty((3, 0)), "labels": LABELS}, "do not fit"),
        ({"descriptors": ROWS[0], "labels": LABELS}, "do not fit"),
        ({"descriptors": ROWS * np.nan, "labels": LABELS}, "row 0 holds NaN"),
        ({"descriptors": ROWS, "labels": np.array(LABELS, object)}, "not a readable"),
        ({"descriptors": ROWS * (1 + 2j), "labels": LABELS}, "must hold numbers or texts"),
        ({"descriptors": ROWS.astype("U3"), "labels": LABELS}, "must be numbers"),
        ({"descriptors": ROWS.astype(np.float64) * 1e300, "labels": LABELS}, "row 0 holds NaN or infinity"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, arrays: dict[str, object], message: str) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=message):
        read_descriptors(tmp_path / "bad.npz")


def npy(header: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize(
    "member",
    [
        b"no array",
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5\n"),
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }\n"),
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }\n" % 10**30),
        npy(b"{'descr': '<U0', 'fortran_order': False, 'shape': (1048576, 1048576), }\n"),
        npy(b"{'descr': '<f4,<i4', 'fortran_order': False, 'shape': (0, 3), }\n"),
    ],
)
@pytest.mark.parametrize("name", ["descriptors", "labels"])
def test_a_member_that_is_no_plain_array_is_refused(tmp_path: Path, name: str, member: bytes) -> None:
    file = tmp_path / "bad.npz"
    sound = {"labels": np.array(LABELS), "descriptors": ROWS}
    np.savez(file, **{other: array for other, array in sound.items() if other != name})  # type: ignore[arg-type]
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(f"{name}.npy", member)
    with pytest.raises(InvalidInputError, match=r"bad\.npz"):
        read_descriptors(file)


def test_an_archive_that_cannot_be_unpacked_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bad.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("descriptors.npy", bytes(1000))
        archive.writestr("labels.npy", bytes(1000))
    data = bytearray(file.read_bytes())
    data[56:66] = b"\xff" * 10
    file.write_bytes(data)
    with pytest.raises(InvalidInputError, match="not a readable"):
        read_descriptors(file)


def test_what_is_no_file_or_no_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no such descriptor file"):
        read_descriptors(tmp_path / "absent.npz")
    (tmp_path / "text.npz").write_text("no zip")
    with pytest.raises(InvalidInputError, match="not a readable"):
        read_descriptors(tmp_path / "text.npz")


Portrait = Callable[[str], str]


def test_an_export_is_a_descriptor_file_with_labels_of_saved_people(
    library: Library, tmp_path: Path, portrait: Portrait
) -> None:
    library.people.add_photos("Cleo", [portrait("P003")])
    written = library.photos.export(tmp_path / "all.npz")
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
        library.photos.export(tmp_path / "all.csv")
