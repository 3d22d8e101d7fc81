"""Photos that can be read in part, or only with something that is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from setnet.library import Library, index_run


def test_a_photo_cut_short_is_kept_and_reported(library: Library, photos: Path) -> None:
    whole = (photos / "2016" / "pair.jpg").read_bytes()
    path = photos / "2016" / "short.jpg"
    path.write_bytes(whole[: len(whole) * 95 // 100])
    report = library.index(workers=0)
    assert report.added == 1
    ((named, note),) = report.partial
    assert named == path
    assert note.startswith("cut short: ")
    assert not report.ok
    assert report.to_dict()["partial_count"] == 1
    assert report.partial[0] in report.failed
    stored = next(photo for photo in library.catalog.all_photos() if photo.path == path)
    assert len(stored.faces) == 2
    again = library.index(workers=0)
    assert (again.unchanged, again.partial, again.ok) == (7, (), True)


def test_raw_files_are_skipped_with_a_sentence_until_the_extra_is_there(
    library: Library, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, twin = photos / "2016" / "IMG_7.NEF", photos / "2016" / "pair.jpg"
    raw.write_bytes(twin.read_bytes())  # the contents decide; this one anybody can read
    monkeypatch.setattr(index_run, "can_read_raw", lambda: False)
    for _ in range(2):
        report = library.index(workers=0)
        ((path, reason),) = report.skipped
        assert path == raw
        assert "pip install 'setnet[raw]'" in reason
        assert (report.ok, report.failed) == (True, ())
        assert "1 skipped" in report.summary
    monkeypatch.setattr(index_run, "can_read_raw", lambda: True)
    report = library.index(workers=0)
    assert (report.skipped, report.copied) == ((), 1)
