from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from setnet.collect import CollectedSet, CollectRun, write_result
from setnet.errors import InvalidInputError, NotAnIndexError
from setnet.evaluate import retrieval
from setnet.evaluate.retrieval import Settings
from setnet.evaluate.worlds import CollectedWorld
from tests.support.invented_collect import invented_run

pytestmark = pytest.mark.usefixtures("coarse_calibration")


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two circles of people, so that a split by people cuts no photo."""
    place = tmp_path_factory.mktemp("collected")
    circles = [range(12), range(12, 24)]
    photos: list[tuple[int, ...]] = [pair for circle in circles for pair in combinations(circle, 2)]
    photos += [(a, a + 1, a + 2) for circle in circles for a in circle[:-2]]
    photos += [(a, a + 1, 100 + a) for circle in circles for a in circle[:-1]]  # somebody unknown with them
    run = invented_run(place, 24, photos)
    for row in run.manifest("labels").rows():
        Path(row["photo"]).touch()
    run = CollectRun.begin(run.path, split=(0.5, 0.0, 0.5))
    write_result(run, place / "set", unanswered="unknown")
    return place / "set"


def test_items_are_the_test_photos_and_queries_those_of_the_data_set(collected: Path) -> None:
    made = CollectedSet(collected)
    world = CollectedWorld(made)
    rows = list(made.rows("test"))
    assert (world.size, world.faces) == (len(rows), sum(len(row["faces"]) for row in rows))
    chunk = next(world.chunks())
    np.testing.assert_allclose(chunk.elements[0], made.descriptors[rows[0]["first"]], atol=1e-6)
    queries = world.queries(5, 4)
    assert [len(query) for query in queries] == [2] * 5 + [3] * 4
    assert all(max(world.truth.relevance(query).values()) == len(query) for query in queries)
    assert world.examples(0, 2).shape == (world.identities, 2, world.dim)


def test_training_people_are_not_tested_on(collected: Path) -> None:
    split = Settings(world=collected).train_test_split()
    train, test = (set(part.labels.tolist()) - {""} for part in (split.train, split.test))
    assert train
    assert test
    assert not train & test


def test_retrieval_runs_on_a_collected_data_set(collected: Path) -> None:
    record = retrieval.run(Settings(world=collected, methods=["mean"], queries=20, repeats=1))
    assert record.row("mean").estimate("ndcg10 n1")[0] > 50
    assert str(record.settings["world"]).startswith("set, photos.jsonl")


def test_other_descriptors_beside_a_data_set_are_refused(collected: Path) -> None:
    with pytest.raises(InvalidInputError, match="has its own descriptors"):
        Settings(descriptors=Path("x.npz"), world=collected)
    with pytest.raises(NotAnIndexError, match="/nowhere holds no data set"):
        Settings(world=Path("/nowhere"))
