"""Folders that are followed over time: unplugged disks, patterns to leave out, photos that are gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.errors import InvalidInputError
from setnet.library import Library
from setnet.library.folder_scan import Exclusion, check_patterns


@pytest.mark.parametrize("is_mount_point", [False, True])
@pytest.mark.parametrize("is_named", [False, True])
def test_a_disk_that_is_unplugged_is_reported_and_its_photos_stay(
    plain: Library, tmp_path: Path, is_mount_point: bool, is_named: bool
) -> None:
    disk = tmp_path / "disk0"
    disk.rename(tmp_path / "unplugged")
    if is_mount_point:
        disk.mkdir()
    (tmp_path / "disk1" / "01.png").unlink()
    report = plain.index([disk, tmp_path / "disk1"] if is_named else None, workers=0, prune=True)
    ((folder, reason),) = report.unreadable
    assert folder == disk
    assert "is its disk plugged in?" in reason
    assert (report.scanned, report.removed, report.vanished) == (9, 1, ())
    assert plain.photos.counts().photos == 19
    shutil.rmtree(disk, ignore_errors=True)
    (tmp_path / "unplugged").rename(disk)
    assert plain.index(workers=0).unchanged == 19


def test_part_of_an_unplugged_disk_is_no_error_and_a_mistyped_folder_is(
    plain: Library, tmp_path: Path
) -> None:
    (tmp_path / "disk0").rename(tmp_path / "unplugged")
    assert plain.index([tmp_path / "disk0" / "2019"], workers=0).unreadable
    with pytest.raises(InvalidInputError, match=r"no folder or photo .*disk7"):
        plain.index([tmp_path / "disk7"], workers=0)
    with pytest.raises(InvalidInputError, match=r"no folder or photo .*2O19"):
        plain.index([tmp_path / "disk1" / "2O19"], workers=0)


def test_a_folder_inside_that_was_emptied_is_not_a_disk_that_is_away(plain: Library, tmp_path: Path) -> None:
    inner = tmp_path / "disk0" / "inner"
    inner.mkdir()
    (tmp_path / "disk0" / "00.png").rename(inner / "00.png")
    assert plain.index(workers=0).moved == 1
    (inner / "00.png").unlink()
    assert plain.index([inner], workers=0, prune=True).removed == 1


def test_patterns_are_kept_with_the_library_until_others_are_given(plain: Library, tmp_path: Path) -> None:
    private = tmp_path / "disk0" / "private"
    private.mkdir()
    shutil.copy(tmp_path / "disk0" / "00.png", private / "secret.png")
    shutil.copy(tmp_path / "disk0" / "00.png", tmp_path / "disk1" / "x.tmp.png")
    report = plain.index(workers=0, exclude=["private/", "*.tmp.png"])
    assert (report.scanned, report.copied) == (20, 0)
    assert report.excluded == ("private", "*.tmp.png")
    report = plain.index(workers=0)
    assert (report.scanned, report.excluded) == (20, ("private", "*.tmp.png"))
    report = plain.index(workers=0, exclude=[""])
    assert (report.copied, report.excluded) == (2, ())


def test_photos_that_are_excluded_later_go_with_prune(plain: Library) -> None:
    assert len(plain.index(workers=0, exclude=["0?.png"]).vanished) == 10
    assert plain.index(workers=0, prune=True).removed == 10
    assert {photo.path.name for photo in plain.photos.all_photos()} == {f"{n}.png" for n in range(10, 20)}


def test_who_is_asked_may_keep_photos_that_are_gone(plain: Library, tmp_path: Path) -> None:
    asked: list[tuple[int, int]] = []

    def no(gone: int, known: int) -> bool:
        asked.append((gone, known))
        return False

    assert plain.index(workers=0, prune=no).removed == 0
    for number in (1, 3, 5):
        (tmp_path / "disk1" / f"{number:02}.png").unlink()
    report = plain.index(workers=0, prune=no)
    assert (report.removed, len(report.vanished), asked) == (0, 3, [(3, 20)])


def test_patterns_match_names_ends_of_paths_and_whole_paths() -> None:
    leaves_out = Exclusion(["raw", "*.tif", "2019/x?", "/mnt/a*"])
    for path in (b"/p/raw", b"/p/b.tif", b"/p/2019/x1", b"/mnt/abc", b"/p/caf\xe9.tif"):
        assert leaves_out(path)
    for path in (b"/p/raws", b"/p/b.tiff", b"/p/2019/y1", b"/p/mnt/abc"):
        assert not leaves_out(path)


@given(st.lists(st.text(max_size=20), max_size=5), st.binary(max_size=30))
def test_any_text_is_a_pattern_or_refused(patterns: list[str], path: bytes) -> None:
    try:
        checked = check_patterns(patterns)
    except InvalidInputError:
        return
    Exclusion(checked)(b"/" + path)
