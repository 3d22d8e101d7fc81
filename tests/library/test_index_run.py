"""A run stores what is new, follows what moved and drops what is gone, also of photos read in part."""

from __future__ import annotations

import io
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from setnet.errors import InvalidInputError, LockedError, ModelError
from setnet.faces import PRESETS, FaceSettings, extract_faces
from setnet.library import IndexProgress, IndexReport, Library, index_run
from setnet.library.folder_scan import is_few
from setnet.library.paths import INDEX


def run(library: Library, *folders: Path, **options: Any) -> IndexReport:
    return library.index(list(folders) or None, workers=0, **options)


def id_of(library: Library, path: Path) -> str:
    return next(photo.id for photo in library.photos.all_photos() if photo.path == path)


def test_a_library_remembers_what_conditions_and_drawings_need(shared: Library, album: Path) -> None:
    counts = shared.photos.counts()
    assert (counts.photos, counts.without_faces, counts.faces, counts.failed) == (5, 1, 8, 1)
    photo = shared.photos.get(id_of(shared, album / "2016" / "pair.jpg"))
    assert (photo.width, photo.height) == (540, 300)
    assert photo.taken is not None
    assert photo.taken.isoformat() == "2016-07-14T18:30:00"
    assert [face.ordinal for face in photo.faces] == [0, 1]
    left, right = photo.faces
    assert left.box.x0 < right.box.x0
    assert left.landmarks.shape == (5, 2)
    assert left.quality["size"] > 40
    assert shared.photos.descriptors(photo.id).shape == (2, 128)
    made = shared.photos.picture(photo, "320", lambda _: pytest.fail("it was made while indexing"))
    with Image.open(io.BytesIO(made)) as small:
        mean = np.asarray(small).mean(axis=(0, 1))
    assert photo.colour is not None
    assert np.abs(mean - list(photo.colour.to_bytes(3, "big"))).max() < 3
    (failure,) = shared.photos.failures()
    assert failure.path == album / "broken.jpg"
    assert "not a photo" in failure.reason
    assert shared.check() == []


def test_nothing_changed_is_nothing_looked_at(library: Library, photos: Path) -> None:
    report = run(library, photos)
    assert (report.unchanged, report.added, report.faces) == (6, 0, 0)
    assert report.ok
    assert run(library).unchanged == 6  # the folders are remembered


def test_a_touched_file_is_not_looked_at_again_but_its_time_is_kept(library: Library, photos: Path) -> None:
    os.utime(photos / "2016" / "pair.jpg", ns=(1, 1))
    report = run(library)
    assert (report.unchanged, report.changed, report.faces) == (6, 0, 0)
    assert run(library).unchanged == 6


def test_a_moved_photo_keeps_its_id_and_faces(library: Library, photos: Path) -> None:
    before = id_of(library, photos / "2019" / "three.jpg")
    descriptors = library.photos.descriptors(before)
    (photos / "new").mkdir()
    (photos / "2019" / "three.jpg").rename(photos / "new" / "renamed.jpg")
    report = run(library)
    assert (report.moved, report.added, report.vanished, report.faces) == (1, 0, (), 0)
    assert library.photos.get(before).path == photos / "new" / "renamed.jpg"
    np.testing.assert_array_equal(library.photos.descriptors(before), descriptors)
    hits = library.search([descriptors[0]], k=1, conditions=_in(photos / "new"))
    assert [hit.photo.id for hit in hits] == [before]
    assert library.check() == []


def test_a_second_copy_is_a_photo_of_its_own_without_a_second_look(library: Library, photos: Path) -> None:
    shutil.copyfile(photos / "2016" / "pair.jpg", photos / "2019" / "copy.jpg")
    report = run(library)
    assert (report.copied, report.moved, report.faces) == (1, 0, 0)
    first, second = (id_of(library, photos / n) for n in ("2016/pair.jpg", "2019/copy.jpg"))
    assert first != second
    np.testing.assert_array_equal(library.photos.descriptors(first), library.photos.descriptors(second))
    assert library.check() == []


def test_a_changed_file_is_replaced(library: Library, photos: Path, compose: Callable[..., None]) -> None:
    before = id_of(library, photos / "2016" / "alone.jpg")
    compose(photos / "2016" / "alone.jpg", ("P007", "P001", "P005"))
    report = run(library)
    assert (report.changed, report.faces) == (1, 3)
    assert len(library.photos.get(before).faces) == 3
    assert library.check() == []


def test_two_files_that_swapped_names_swap_their_faces(library: Library, photos: Path) -> None:
    one, two = photos / "2016" / "pair.jpg", photos / "2019" / "three.jpg"
    one.rename(photos / "x")
    two.rename(one)
    (photos / "x").rename(two)
    run(library)
    assert len(library.photos.get(id_of(library, one)).faces) == 3
    assert len(library.photos.get(id_of(library, two)).faces) == 2
    assert library.check() == []


def test_vanished_photos_are_reported_and_go_with_prune_only(library: Library, photos: Path) -> None:
    gone = photos / "2016" / "pair.jpg"
    gone.unlink()
    report = run(library)
    assert report.vanished == (gone,)
    assert library.photos.counts().photos == 5
    report = run(library, prune=True)
    assert (report.removed, report.vanished) == (1, ())
    assert library.photos.counts().photos == 4
    assert library.check() == []


def test_prune_leaves_other_folders_alone(library: Library, photos: Path, tmp_path: Path) -> None:
    (photos / "2016" / "pair.jpg").unlink()
    assert run(library, photos / "2019", prune=True).removed == 0
    assert library.photos.counts().photos == 5


def test_bad_files_are_listed_and_retried_when_asked(
    library: Library, photos: Path, compose: Callable[..., None]
) -> None:
    assert run(library).failed == ()
    report = run(library, retry=True)
    assert [path for path, _ in report.failed] == [photos / "broken.jpg"]
    assert not report.ok
    compose(photos / "broken.jpg", ("P001",))
    assert run(library).changed == 1
    assert library.photos.failures() == []


def test_a_photo_that_breaks_leaves_the_index_too(library: Library, photos: Path) -> None:
    data = (photos / "2016" / "pair.jpg").read_bytes()
    (photos / "2016" / "pair.jpg").write_bytes(data[:200])
    report = run(library)
    assert "damaged" in report.failed[0][1]
    assert library.photos.counts().photos == 4
    assert library.check() == []


def test_more_than_a_tenth_is_removed_only_when_that_is_agreed_to(library: Library, photos: Path) -> None:
    (photos / "2016" / "alone.jpg").unlink()
    report = run(library, prune=is_few)
    assert (report.removed, len(report.vanished), report.prune_refused) == (0, 1, True)
    report = run(library, prune=lambda gone, known: (gone, known) == (1, 6))
    assert (report.removed, report.vanished, report.prune_refused) == (1, (), False)


def test_names_of_any_bytes_are_indexed_and_found(
    library: Library, photos: Path, portrait: Callable[[str], str]
) -> None:
    strange = Path(os.fsdecode(os.fsencode(photos) + b"/caf\xe9"))
    strange.mkdir()
    (photos / "2016" / "alone.jpg").rename(strange / "f\udcff\u4e2d.jpg")
    assert run(library).moved == 1
    (hit,) = library.search([portrait("P003")], k=1, conditions=_in(strange))
    assert hit.path == strange / "f\udcff\u4e2d.jpg"
    assert hit.path.is_file()


def test_the_newest_photos_come_first_and_people_before_the_end(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_run, "BATCH_PHOTOS", 2)
    monkeypatch.setattr(index_run, "GROUPED_PHOTOS", 2)
    files = sorted(photos.rglob("*.jpg"))
    for age, file in enumerate(files):
        os.utime(file, (1.5e9 - 1000 * age,) * 2)
    groups: list[int] = []

    def look(progress: IndexProgress) -> None:
        if progress.stage == "finding faces":
            groups.append(len(library.groups.page()))

    with Library.create(tmp_path / "other") as library:
        library.index([photos], workers=0, progress=look)
        read = [photo.path for photo in reversed(library.photos.latest(10))]
    assert read == [file for file in files if file in read]
    assert groups[-1] > 0


def test_progress_tells_where_a_run_is(library: Library, photos: Path, compose: Callable[..., None]) -> None:
    compose(photos / "new.jpg", ("P001", "P005"))
    seen: list[IndexProgress] = []
    library.index(workers=0, progress=seen.append)
    reading = [now for now in seen if now.stage == "finding faces"][-1]
    assert (reading.done, reading.total, reading.faces, reading.unchanged) == (1, 1, 2, 6)
    assert seen[-1].stage == "grouping faces"
    assert reading.seconds_left == 0


def test_the_time_left_follows_the_last_minute_and_not_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading the models takes as long as dozens of photos, and a slow disk may become a quick one."""
    clock = 0.0
    monkeypatch.setattr(index_run, "monotonic", lambda: clock)
    pace = index_run.Pace()
    assert pace.rate(0) == 0.0
    clock = 20.0
    assert pace.rate(1) == 0.0  # nothing to go by yet
    for done in range(2, 11):  # two seconds each
        clock += 2.0
        rate = pace.rate(done)
    assert rate == pytest.approx(0.5)
    for done in range(11, 811):  # ten in a second
        clock += 0.1
        rate = pace.rate(done)
    assert rate == pytest.approx(10.0, rel=0.02)


def test_links_to_nothing_are_skipped_and_their_photos_are_not_taken_for_gone(
    library: Library, photos: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "disk" / "away.jpg"
    elsewhere.parent.mkdir()
    shutil.copyfile(photos / "2016" / "pair.jpg", elsewhere)
    (photos / "away.jpg").symlink_to(elsewhere)
    assert run(library).copied == 1
    elsewhere.unlink()
    report = run(library, prune=True)
    assert report.ok
    assert report.skipped == ((photos / "away.jpg", "a link to a file that is gone"),)
    assert (report.removed, report.vanished) == (0, ())


def test_a_run_can_be_stopped_from_outside(
    library: Library, photos: Path, compose: Callable[..., None]
) -> None:
    for number in range(4):
        compose(photos / f"new{number}.jpg", ("P001",), tile=number)
    stop = threading.Event()
    report = library.index(workers=0, progress=lambda _: stop.set(), should_stop=stop.is_set)
    assert (report.interrupted, report.added) == (True, 1)
    assert library.photos.counts().photos == 6
    assert run(library).added == 3


def test_a_run_stopped_while_it_looks_for_photos_calls_none_vanished(library: Library) -> None:
    report = library.index(workers=0, prune=True, should_stop=lambda: True)
    assert (report.interrupted, report.vanished, report.removed) == (True, (), 0)
    assert library.photos.counts().photos == 5


def test_a_second_writer_is_told_at_once(library: Library, photos: Path) -> None:
    with library._writing(), pytest.raises(LockedError, match="wait for its end"):
        run(library, photos)


def test_other_settings_and_other_models_are_refused_with_a_way_out(library: Library) -> None:
    with pytest.raises(
        InvalidInputError, match=r"--detector mtcnn, not yunet.*--library DIR --detector yunet"
    ):
        Library.open_or_create(library.path, detector="yunet")
    with pytest.raises(InvalidInputError, match="--detector mtcnn, not cascade"):
        Library.open_or_create(library.path, **PRESETS["quick"])
    with pytest.raises(InvalidInputError, match=r"sface, not mine.*--reembed --descriptor mine"):
        Library.open_or_create(library.path, descriptor="mine")
    with Library.open_or_create(library.path, detector="mtcnn", min_face=40):
        pass
    with library._database.writing() as db:
        db.execute("UPDATE meta SET value = 'sface another-hash' WHERE key = 'model'")
    with pytest.raises(ModelError, match="setnet index --reembed"):
        run(library)


def test_a_library_goes_on_with_the_detector_it_was_made_with(photos: Path, tmp_path: Path) -> None:
    with Library.create(tmp_path / "old", FaceSettings.preset("quick")) as old:
        run(old, photos / "2016")
    with Library.open_or_create(tmp_path / "old") as old:
        assert old.settings.detector == "cascade"
        run(old, photos)
        found = {photo.path: photo.faces for photo in old.photos.all_photos()}
        ours = extract_faces(photos / "2016" / "pair.jpg", old.settings)
    assert [face.box for face in found[photos / "2016" / "pair.jpg"]] == [face.box for face in ours]


def test_a_folder_that_is_not_there_is_wrong_use(library: Library, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no folder or photo"):
        run(library, tmp_path / "nowhere")
    with Library.create(tmp_path / "empty") as empty, pytest.raises(InvalidInputError, match="no folder yet"):
        run(empty)


def test_the_library_inside_the_photos_is_not_indexed(photos: Path) -> None:
    with Library.create(photos / "library") as library:
        run(library, photos)
        library.photos.thumbnail(id_of(library, photos / "2016" / "pair.jpg"))
        assert run(library, photos).added == 0


@pytest.mark.parametrize("step", ["add", "delete"])
def test_a_kill_between_the_two_stores_heals_at_the_next_run(
    library: Library,
    photos: Path,
    compose: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    compose(photos / "2016" / "alone.jpg", ("P001", "P005"))
    (photos / "2016" / "pair.jpg").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(f"setnet.engine.SetIndex.{step}", die)
        with pytest.raises(Killed):
            run(library, photos, prune=True)
    for hit in library.search(
        [library.photos.descriptors(id_of(library, photos / "2019" / "three.jpg"))], k=10
    ):
        assert hit.photo.path.is_file() or hit.photo.path.name == "pair.jpg"
    run(library, photos, prune=True)
    assert library.photos.counts().photos == 4
    assert library.check() == []


def test_check_names_damage_and_disagreement(library: Library) -> None:
    with library._database.writing() as db:
        db.execute(
            "UPDATE photos SET faces = 7 WHERE id = (SELECT min(id) FROM photos WHERE state = 'ready')"
        )
    assert any("7 faces in the database" in problem for problem in library.check())
    segment = next((library.path / INDEX / "segments").iterdir())
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    assert any(segment.name in problem for problem in library.check())


def _in(folder: Path) -> object:
    from setnet.library import Conditions

    return Conditions(folder=str(folder))


def test_a_photo_cut_short_is_kept_and_reported(library: Library, photos: Path) -> None:
    whole = (photos / "2016" / "pair.jpg").read_bytes()
    path = photos / "2016" / "short.jpg"
    path.write_bytes(whole[: len(whole) * 95 // 100])
    report = library.index(workers=0)
    assert report.added == 1
    ((named, note),) = report.failed
    assert named == path
    assert note.startswith("cut short: ")
    assert not report.ok
    stored = next(photo for photo in library.photos.all_photos() if photo.path == path)
    assert len(stored.faces) == 2
    again = library.index(workers=0)
    assert (again.unchanged, again.failed, again.ok) == (7, (), True)


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
