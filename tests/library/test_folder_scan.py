from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.library.folder_scan import FolderScan, is_photo_name
from setnet.library.paths import display_path, folder_text


def names(*roots: Path, left_out: tuple[bytes, ...] = ()) -> list[str]:
    scan = FolderScan([os.fsencode(root) for root in roots], left_out)
    return [display_path(file.path).removeprefix(str(roots[0]) + "/") for file in scan.files()]


def touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")


def test_photos_are_listed_in_order_and_everything_else_is_passed_over(tmp_path: Path) -> None:
    for name in (
        "b.JPG", "a.jpeg", "sub/c.heic", "sub/deeper/d.webp", "notes.txt", "a.jpeg.xmp", ".hidden.jpg",
        "._b.JPG", ".git/e.jpg", "@eaDir/b.JPG", "movie.mp4", "Thumbs.db",
    ):  # fmt: skip
        touch(tmp_path / name)
    (tmp_path / "folder.jpg").mkdir()
    os.mkfifo(tmp_path / "pipe.jpg")
    assert names(tmp_path) == ["a.jpeg", "b.JPG", "sub/c.heic", "sub/deeper/d.webp"]


def test_a_loop_of_links_ends_and_real_paths_win(tmp_path: Path) -> None:
    touch(tmp_path / "b" / "photo.jpg")
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "up").symlink_to(tmp_path)
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    assert names(tmp_path) == ["b/photo.jpg"]


def test_a_link_to_a_folder_elsewhere_is_followed(tmp_path: Path) -> None:
    touch(tmp_path / "elsewhere" / "photo.jpg")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "elsewhere")
    assert names(tmp_path / "root") == ["link/photo.jpg"]


def test_names_that_are_not_utf8_are_found_as_they_are(tmp_path: Path) -> None:
    strange = os.fsencode(tmp_path) + b"/caf\xe9 \xe4\xb8\xad.jpg"
    Path(os.fsdecode(strange)).write_bytes(b"x")
    (found,) = FolderScan([os.fsencode(tmp_path)]).files()
    assert found.path == strange
    assert display_path(found.path).endswith("caf\\xe9 中.jpg")


def test_a_missing_folder_is_reported_not_raised(tmp_path: Path) -> None:
    scan = FolderScan([os.fsencode(tmp_path / "missing")])
    assert list(scan.files()) == []
    assert scan.unreadable == [(os.fsencode(tmp_path / "missing"), "No such file or directory")]


def test_links_to_nothing_and_photos_without_a_suffix_are_skipped_with_a_reason(tmp_path: Path) -> None:
    touch(tmp_path / "a.jpg")
    (tmp_path / "gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    (tmp_path / "IMG_1").write_bytes(b"\xff\xd8\xff\xe0 and more")
    (tmp_path / "IMG_2").write_bytes(b"\0\0\0\x18ftypheic and more")
    (tmp_path / "Makefile").write_text("all:")
    scan = FolderScan([os.fsencode(tmp_path)])
    assert [display_path(file.path) for file in scan.files()] == [str(tmp_path / "a.jpg")]
    assert scan.unreadable == []
    reasons = {os.path.basename(path): reason for path, reason in scan.skipped}
    assert reasons.keys() == {b"gone.jpg", b"IMG_1", b"IMG_2"}
    assert reasons[b"gone.jpg"] == "a link to a file that is gone"
    assert reasons[b"IMG_1"].startswith("its name has no suffix such as .jpg")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_an_unreadable_folder_is_reported_and_the_rest_is_found(tmp_path: Path) -> None:
    touch(tmp_path / "locked" / "a.jpg")
    touch(tmp_path / "open" / "b.jpg")
    (tmp_path / "locked").chmod(0)
    try:
        scan = FolderScan([os.fsencode(tmp_path)])
        assert [display_path(f.path) for f in scan.files()] == [str(tmp_path / "open" / "b.jpg")]
        assert [path for path, _ in scan.unreadable] == [os.fsencode(tmp_path / "locked")]
    finally:
        (tmp_path / "locked").chmod(0o700)


def test_a_single_photo_is_a_root_and_a_skipped_folder_is_not_entered(tmp_path: Path) -> None:
    touch(tmp_path / "a.jpg")
    touch(tmp_path / "library" / "thumb.jpg")
    assert names(tmp_path, left_out=(os.fsencode(tmp_path / "library"),)) == ["a.jpg"]
    assert [f.path for f in FolderScan([os.fsencode(tmp_path / "a.jpg")]).files()] == [
        os.fsencode(tmp_path / "a.jpg")
    ]


@given(st.binary(min_size=1, max_size=40).filter(lambda b: b"/" not in b and b"\0" not in b))
def test_every_name_can_be_shown_and_becomes_a_folder_attribute(name: bytes) -> None:
    display_path(name).encode("utf-8")
    assert folder_text(b"/photos/" + name).startswith("/photos/")
    assert isinstance(is_photo_name(name), bool)
