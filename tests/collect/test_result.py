from __future__ import annotations

import json
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.collect import AnnotationQueue, Answer, CollectedSet, CollectRun, run_step, write_result
from setnet.collect.dataset import SPLITS, is_collected
from setnet.collect.result import final_rows, split_people
from setnet.errors import InvalidInputError, NotAnIndexError
from tests.support.invented_collect import invented_run, name_of, photo_row, write
from tests.support.invented_photos import face_of

# Four couples; who is together with whom makes two circles of four people.
PHOTOS = [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7, 50), (0, 3, 51, 52), (4, 7), (0, 1, 2), (4, 5, 6)]


@pytest.fixture
def run(tmp_path: Path) -> CollectRun:
    run: CollectRun = invented_run(tmp_path, 8, PHOTOS)
    for row in run.manifest("labels").rows():
        photo = Path(row["photo"])
        photo.parent.mkdir(exist_ok=True)
        photo.write_bytes(b"photo")
    return run


def result(run: CollectRun, out: Path, **options: str) -> CollectedSet:
    write_result(run, out, unanswered="unknown", **options)  # type: ignore[arg-type]
    return CollectedSet(out)


def test_the_data_set_has_labels_descriptors_queries_and_statistics(run: CollectRun, tmp_path: Path) -> None:
    made = result(CollectRun.begin(run.path, split=(0.5, 0.0, 0.5)), tmp_path / "set")
    assert is_collected(made.path)
    train, test = made.splits["train"], made.splits["test"]
    assert not set(train) & set(test)
    assert len(train) == len(test) == 4
    for row in made.rows():
        names = {face["name"] for face in row["faces"] if face["name"]}
        assert names <= set(made.splits[row["split"]])
        assert made.photo_file(row).read_bytes() == b"photo"
    descriptors, labels = made.labelled_faces("train")
    assert descriptors.shape[0] == len(labels)
    assert set(labels.tolist()) - {""} == set(train)
    for query in made.queries():
        assert set(query) <= set(test)
        assert any(set(query) <= {f["name"] for f in row["faces"]} for row in made.rows("test"))
    statistics = json.loads((made.path / "statistics.json").read_text())
    assert statistics["all"]["photos"] == 10
    assert statistics["all"]["faces_per_photo"] == {"2": 6, "3": 3, "4": 1, "5": 0, ">5": 0}
    assert statistics["all"]["people_per_photo"]["2"] == 8


def test_descriptors_stand_where_the_rows_say(run: CollectRun, tmp_path: Path) -> None:
    made = result(run, tmp_path / "set")
    for row in made.rows():
        number = int(Path(row["photo"]).stem)
        for place, person in enumerate(PHOTOS[number]):
            np.testing.assert_array_equal(made.descriptors[row["first"] + place], face_of(person, number))


def test_photos_of_people_of_several_splits_are_in_none(tmp_path: Path) -> None:
    chain = invented_run(tmp_path, 6, [*pairwise(range(6))])
    for row in chain.manifest("labels").rows():
        Path(row["photo"]).write_bytes(b"photo")
    chain = CollectRun.begin(chain.path, split=(0.5, 0.0, 0.5))
    result(chain, tmp_path / "set")
    dropped = [row for row in chain.manifest("result").rows() if not row["kept"]]
    assert {row["reason"] for row in dropped} == {"people of several splits"}
    assert len(dropped) <= 2  # a stretch of the chain, cut at its ends


def test_answers_count_and_a_person_can_drop_a_photo(tmp_path: Path) -> None:
    run = invented_run(tmp_path, 3, [(0, 1, 10), (1, 2, 11), (0, 2, 12)])
    with pytest.raises(InvalidInputError, match="3 of 3 faces wait"):
        write_result(run, tmp_path / "set")
    queue = AnnotationQueue(run)
    for number, answer in enumerate((Answer("name", name_of(2)), Answer("unknown"), Answer("drop photo"))):
        queue.answer(number, answer)
    rows = list(final_rows(run))
    assert [face["name"] for face in rows[0]["faces"]] == [name_of(0), name_of(1), name_of(2)]
    assert [row["faces"][2]["by"] for row in rows[:2]] == ["person", "person"]
    assert rows[1]["faces"][2]["name"] is None
    assert [row.get("reason") for row in rows] == [None, None, "dropped by a person"]


@pytest.mark.parametrize(("unanswered", "kept"), [("unknown", 3), ("drop", 0)])
def test_unanswered_faces_are_unknown_or_cost_their_photos(
    tmp_path: Path, unanswered: str, kept: int
) -> None:
    run = invented_run(tmp_path, 3, [(0, 1, 10), (1, 2, 11), (0, 2, 12)])
    assert sum(row["kept"] for row in final_rows(run, unanswered)) == kept


def test_distractors_have_the_distribution_of_the_data_set_and_nobody_of_the_list(tmp_path: Path) -> None:
    run = invented_run(tmp_path, 8, PHOTOS)
    (tmp_path / "others").mkdir()
    run = CollectRun.begin(run.path, distractors=[tmp_path / "others"], split=(0.0, 0.0, 1.0))
    others = [[(100 + 10 * n + k, 0) for k in range(2 + n % 3)] for n in range(30)]
    rows = [photo_row(run, f"d{n}.jpg", faces, ()) for n, faces in enumerate(others)]
    rows.append(photo_row(run, "known.jpg", [(200, 0), (3, 0)], ()))
    for row in (*run.manifest("labels").rows(), *rows):
        Path(row["photo"]).write_bytes(b"photo")
    write(run, "distractors", rows)
    made = result(run, tmp_path / "set")
    sizes = [len(row["faces"]) for row in made.rows("distractor")]
    # 6 photos of two faces, 3 of three, 1 of four: as many as the ten of two faces allow
    assert {n: sizes.count(n) for n in (2, 3, 4)} == {2: 10, 3: 5, 4: 1}
    reasons = {Path(r["photo"]).name: r.get("reason") for r in run.manifest("result").rows()}
    assert reasons["known.jpg"] == "may be a person of the list"


def test_an_existing_folder_is_not_overwritten_and_a_failed_write_leaves_none(
    run: CollectRun, tmp_path: Path
) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "mine").touch()
    with pytest.raises(InvalidInputError, match="has files in it"):
        result(run, tmp_path / "set")
    Path(next(run.manifest("labels").rows())["photo"]).unlink()
    with pytest.raises(Exception, match="cannot write the data set"):
        result(run, tmp_path / "other")
    assert not (tmp_path / "other").exists()
    with pytest.raises(NotAnIndexError):
        CollectedSet(tmp_path / "other")


def test_memory_does_not_grow_with_the_photos(tmp_path: Path) -> None:
    def peak(place: Path, photos: int) -> int:
        run = invented_run(place, 6, [(0, 1)])
        few = [
            photo_row(run, f"{n}.jpg", [(n % 5, n), (n % 5 + 1, n)], (n % 5, n % 5 + 1)) for n in range(50)
        ]
        Path(few[0]["photo"]).write_bytes(b"photo")
        names = [f"{few[0]['photo']}/../{n}.jpg" for n in range(photos)]
        write(
            run, "faces", ({**few[n % 50], "photo": name, "text": "x" * 500} for n, name in enumerate(names))
        )
        write(run, "duplicates", ({"photo": name, "kept": True} for name in names))
        tracemalloc.start()
        run_step(run, "labels")
        for _ in final_rows(run, "unknown"):
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    small, large = (peak(tmp_path / str(n), n) for n in (100, 1000))
    assert large - small < 200_000  # text and faces of the other 900 photos alone are 1.7 MB


NAMES = [f"p{n}" for n in range(12)]
PAIRS = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda p: p[0] < p[1]), st.integers(1, 9)
)


@given(PAIRS, st.sampled_from([(0.5, 0.1, 0.4), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.25, 0.5, 0.25)]))
def test_everybody_is_in_one_split_and_shares_are_met(
    together: dict[tuple[str, str], int], shares: tuple[float, float, float]
) -> None:
    splits = split_people(NAMES, together, shares)
    assert set(splits) == set(NAMES)
    counts = [list(splits.values()).count(split) for split in SPLITS]
    assert all(abs(count - 12 * share) <= 1 for count, share in zip(counts, shares, strict=True))
    assert splits == split_people(NAMES[::-1], together, shares)


def test_people_who_are_together_stay_together() -> None:
    circles = {(f"p{i}", f"p{j}"): 1 for i in range(12) for j in range(i + 1, 12) if i // 6 == j // 6}
    splits = split_people(NAMES, circles, (0.5, 0.0, 0.5))
    assert all(splits[first] == splits[second] for first, second in circles)
