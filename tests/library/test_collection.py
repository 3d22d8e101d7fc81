"""Many machines find faces and keep them in a collection, which a library then takes over."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.engine import Collection, SetIndex
from setnet.engine.manifest import Share
from setnet.errors import InvalidInputError, ModelError, StorageError
from setnet.library import Example, IndexReport, Library
from setnet.library import collection as batch
from setnet.library.collection import CollectedPhotos, index_into
from setnet.library.photo_reader import PhotoReader, PhotoResult, PhotoTask
from tests.library.test_shots import shot
from tests.support.command_line import answered, called
from tests.support.live_server import searcher_on
from tests.support.s3_server import s3_server

pytest.importorskip("pyarrow")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "collection"


@pytest.fixture
def known_faces(reading_known: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """What is in each photo of the album is known, so that no test finds faces."""
    with reading_known():
        yield


def run(place: Path, photos: Path, part: Share = (1, 1), **options: Any) -> IndexReport:
    return index_into(place, [photos], part, workers=0, **options)


def names(place: Path) -> list[str]:
    with SetIndex.open(place) as index:
        return sorted(Path(item.id).name for item in index)


def assert_same(library: Library, other: Library) -> None:
    """Assert that two libraries hold the same but for ids and where the photos are."""
    found = []
    for one in (library, other):
        top = one.folders[0]
        rows = {}
        for photo in one.photos.all_photos():
            vectors = one.photos.descriptors(photo.id).tolist() if photo.faces else []
            rows[photo.path.relative_to(top)] = (photo._replace(id="", stored_path=b""), vectors)
        found.append((rows, [failed.path.name for failed in one.photos.failures()]))
        assert one.check() == []
    assert found[0] == found[1]


@pytest.mark.usefixtures("known_faces")
def test_parts_that_are_indexed_apart_become_a_library_like_one_that_was_indexed(
    place: Path, photos: Path, shared: Library, tmp_path: Path
) -> None:
    reports = [run(place, photos, (i, 3)) for i in (1, 2, 3)]
    assert sum(report.added for report in reports) == 5
    assert sum(report.scanned for report in reports) == 6
    assert [len(report.failed) for report in reports].count(1) == 1
    assert [run(place, photos, (i, 2)).unchanged for i in (1, 2)] == [
        sum(1 for _ in batch.CollectionPart(Collection(place), (i, 2), []).known_files()) for i in (1, 2)
    ]
    with Library.create(tmp_path / "library") as library:
        report = library.index(collection=place)
        assert (report.added, report.faces, len(report.failed)) == (5, 8, 1)
        assert_same(library, shared)
        assert library.groups.totals() == shared.groups.totals()
        photo = next(photo for photo in shared.photos.all_photos() if photo.faces)
        query = [shared.photos.descriptors(photo.id)[0]]
        found, expected = ({hit.path.name for hit in one.search(query)} for one in (library, shared))
        assert found == expected
        again = library.index(collection=place)
        assert (again.unchanged, again.added, again.changed) == (5, 0, 0)


@pytest.mark.usefixtures("known_faces")
def test_changed_and_deleted_photos_reach_the_collection_and_the_library(
    place: Path, photos: Path, tmp_path: Path
) -> None:
    run(place, photos)
    with Library.create(tmp_path / "library") as library:
        library.index(collection=place)
        os.utime(photos / "2016" / "pair.jpg", ns=(1, 1))
        (photos / "2019" / "others.jpg").unlink()
        report = run(place, photos)
        assert (report.changed, report.unchanged, len(report.vanished)) == (1, 4, 1)
        assert run(place, photos, prune=lambda gone, known: (gone, known) == (1, 6)).removed == 1
        assert "others.jpg" not in names(place)
        report = library.index(collection=place, prune=True)
        assert (report.changed, report.removed, library.photos.counts().photos) == (1, 1, 4)
        assert library.check() == []


@pytest.mark.usefixtures("known_faces")
def test_a_part_that_was_stopped_goes_on(place: Path, photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_BATCH", 1)
    monkeypatch.setattr("setnet.library.index_run.BATCH_PHOTOS", 1)
    calls = iter([False] * 9 + [True] * 9)
    assert run(place, photos, should_stop=lambda: next(calls)).interrupted
    done = len(names(place))
    assert 0 < done < 6
    report = run(place, photos)
    assert (report.unchanged, report.added + len(report.failed)) == (done, 6 - done)
    assert run(place, photos).unchanged == 6


@pytest.mark.usefixtures("known_faces")
def test_a_merge_keeps_what_is_known_of_photos_and_a_deletion_leaves_none_of_it(
    place: Path, photos: Path, shared: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "_BATCH", 1)
    monkeypatch.setattr("setnet.library.index_run.BATCH_PHOTOS", 1)
    run(place, photos)
    shutil.copy(photos / "2016" / "pair.jpg", photos / "secret.jpg")
    collection = Collection(place)
    assert len(collection.manifest.segments) == 6
    collection.compact(keep=0)
    assert len(list(place.rglob("*.parquet"))) == 2
    with Library.create(tmp_path / "library") as library:
        library.index(collection=place)
        assert_same(library, shared)
    (pair,) = (item for item in CollectedPhotos(place).files() if item.path.endswith(b"pair.jpg"))
    collection.delete([os.fsdecode(pair.path)])
    collection.compact(keep=0)
    files = [path for path in place.rglob("*") if path.is_file()]
    assert len(files) == 4
    assert not any(b"pair.jpg" in path.read_bytes() for path in files)


def test_shots_that_are_no_more_go_with_the_change(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    video = tmp_path / "films" / "party.mp4"
    video.parent.mkdir()
    video.write_bytes(b"a video")
    shots = [shot(0, 2, 1, 2), shot(2, 4), shot(5, 7, 3)]

    def results(_: PhotoReader, tasks: Iterable[PhotoTask], *__: object) -> Iterator[PhotoResult]:
        for task in tasks:
            info = os.stat(task.path)
            whole = PhotoResult(task.path, info.st_size, info.st_mtime_ns, b"v" * 16)
            own = [
                replace(
                    s,
                    path=s.path.replace(s.file, task.path),
                    size=whole.size,
                    mtime_ns=whole.mtime_ns,
                    sprite=b"J",
                )
                for s in shots
            ]
            yield replace(whole, shots=tuple(own))

    monkeypatch.setattr(PhotoReader, "results", results)
    assert run(place, video.parent).shots == 3
    with Library.create(tmp_path / "library") as library:
        assert library.index(collection=place).shots == 3
        found = library.photos.video_shots(os.fsencode(video))
        assert [(s.start, s.stop, len(s.faces)) for s in found] == [(0, 2, 2), (2, 4, 0), (5, 7, 1)]
        assert found[0].faces[1].seen == 1.5
        del shots[1:]
        video.write_bytes(b"another")
        os.utime(video, ns=(1, 1))
        assert run(place, video.parent).changed == 1
        assert len(names(place)) == 1
        library.index(collection=place)
        assert len(library.photos.video_shots(os.fsencode(video))) == 1
        assert library.check() == []


@pytest.mark.usefixtures("known_faces")
def test_the_command_line_says_what_is_wrong_before_work_starts(place: Path, photos: Path) -> None:
    report = answered("index", photos, "--to", place, "--part", "1/1", "--workers", 0, code=1)
    assert (report["added"], report["part"]) == (5, "1/1")
    for words, text in {
        "--part 3/2": "i/n is expected",
        "--part 0/2": "i/n is expected",
        "--detector yunet": "was made with --detector mtcnn, not yunet",
        "--watch": "leave out --watch",
        "--dask tcp://127.0.0.1:9 --part 1/2": "leave out --part",
    }.items():
        assert text in called("index", photos, "--to", place, *words.split(), code=2)[1]
    assert "leave out --part" in called("index", photos, "--part", "1/2", code=2)[1]
    assert "no folder or photo" in called("index", photos / "none", "--to", place, code=2)[1]
    assert answered("index", "--from", place, "--library", place.parent / "library", code=1)["added"] == 5
    said = called("index", "--from", place, "--min-face", 50, "--library", place.parent / "library", code=2)
    assert "was made with --min-face 40" in said[1]


@pytest.mark.usefixtures("known_faces")
def test_another_model_and_other_collections_are_refused(
    place: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Collection.create(tmp_path / "outfits", dim=128)
    with pytest.raises(InvalidInputError, match="something else than photos"):
        run(tmp_path / "outfits", photos)
    run(place, photos, (1, 2))
    with monkeypatch.context() as patch:
        patch.setattr(batch, "model_fingerprint", lambda _: "sface other")
        with pytest.raises(ModelError, match="not the one that made"):
            run(place, photos, (2, 2))
    with Library.create(tmp_path / "library") as library:
        for table in place.glob("elements/*"):
            table.write_bytes(b"PAR1")
        with pytest.raises(StorageError, match=r"elements/.*parquet is damaged"):
            library.index(collection=place)
        assert library.check() == []


@pytest.mark.usefixtures("known_faces")
def test_searchers_are_asked_for_people_in_photos_and_of_a_library(
    place: Path, photos: Path, shared: Library, tmp_path: Path
) -> None:
    run(place, photos)
    library = tmp_path / "library"
    with Library.create(library) as made:
        vector = shared.photos.descriptors(
            shared.photos.photo_at(os.fsencode(shared.folders[0] / "2016/alone.jpg")).id
        )
        made.people.add("Ben", [Example(vector[0])])
    with searcher_on(place, "1/1") as server:
        asked = ["--searchers", server.url, "--library", library]
        pair, alone = photos / "2016" / "pair.jpg", photos / "2016" / "alone.jpg"
        hits = answered("search", "Ben", f"{pair}#1", "--all", *asked)["hits"]
        assert [hit["photo"] for hit in hits] == [str(pair), str(photos / "2019" / "three.jpg")]
        assert hits[0]["matches"].keys() == {"Ben", "pair#1"}
        (hit,) = answered("search", alone, "--only", "--before", "2018", *asked[:2], "--library", "none")[
            "hits"
        ]
        assert hit["photo"] == str(alone)
        assert "pair.jpg" not in called("search", "Ben", "--without", f"{pair}#1", *asked)[0]
        assert "leave out --sure" in called("search", "Ben", "--sure", *asked, code=2)[1]


def test_photos_and_collection_on_s3(tmp_path: Path, album: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with s3_server() as server:
        for file in (album / "2016").iterdir():
            server.put(f"photos/{file.name}", file.read_bytes())
        for i in (1, 2, 1):
            report = index_into("s3://album/faces", ["s3://album/photos"], (i, 2), workers=0)
        assert (report.added, report.failed) == (0, ())
        with Library.create(tmp_path / "library") as library:
            assert library.index(collection="s3://album/faces").faces == 3
            (pair,) = (photo for photo in library.photos.all_photos() if len(photo.faces) == 2)
            assert pair.display_name == "s3://album/photos/pair.jpg"
            assert library.photos.thumbnail(pair.id, 64).startswith(b"\xff\xd8")
        vectors = np.ones((1, 128), np.float32)
        with SetIndex.open("s3://album/faces") as index:
            assert len(index.search(vectors, mode="fast")) == 2


def test_dask_does_all_parts(place: Path, photos: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="pip install 'setnet[dask]'")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        report = answered("index", photos, "--to", place, "--dask", cluster.scheduler_address, code=1)
    assert (report["added"], report["faces"], report["failed_count"]) == (5, 8, 1)
    assert run(place, photos).unchanged == 6
