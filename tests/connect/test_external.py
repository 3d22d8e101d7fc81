"""Qdrant, LanceDB and an engine of one's own answer like an index; the extra `bench` has the first two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.connect import ExternalSets, LanceSets, QdrantSets
from setnet.engine import SetIndex
from setnet.engine.conditions import Condition
from setnet.errors import InvalidInputError, NotAnIndexError
from tests.support.sets_world import sets_world

WORLD = sets_world()
QUERY = WORLD.people[WORLD.together]
OWNERS = np.repeat(np.arange(len(WORLD.ids)), WORLD.counts)
SCALED = WORLD.elements * np.linspace(0.5, 2, len(OWNERS), dtype=np.float32)[:, None]
PAYLOADS = [{"item": WORLD.ids[i]} | WORLD.attributes[i] for i in OWNERS.tolist()]


class OwnSets(ExternalSets):
    """What a user writes for an engine that setnet does not know: here arrays."""

    dim = 128

    def elements_near(self, rows: Any, count: int, where: Sequence[Condition]) -> tuple[list[str], Any]:
        assert not where
        near = np.argsort(-WORLD.elements @ rows.T, axis=0, kind="stable")[:count]
        held = np.isin(OWNERS, OWNERS[near])
        return [WORLD.ids[i] for i in OWNERS[held].tolist()], SCALED[held]


def lance(folder: Path) -> LanceSets:
    lancedb = pytest.importorskip("lancedb")
    import pyarrow as pa

    columns: dict[str, Any] = {name: [row[name] for row in PAYLOADS] for name in PAYLOADS[0]}
    vectors = pa.FixedSizeListArray.from_arrays(SCALED.ravel(), 128)
    table = lancedb.connect(folder).create_table("faces", pa.table(columns | {"vector": vectors}))
    return LanceSets(table)


def qdrant_edge(folder: Path) -> QdrantSets:
    edge = pytest.importorskip("qdrant_edge")
    config = edge.EdgeConfig(vectors=edge.EdgeVectorParams(size=128, distance=edge.Distance.Cosine))
    shard = edge.EdgeShard.create(str(folder / "shard"), config)
    with pytest.raises(NotAnIndexError, match="is empty"):
        QdrantSets(shard)
    points = [edge.Point(i, SCALED[i].tolist(), payload) for i, payload in enumerate(PAYLOADS)]
    shard.update(edge.UpdateOperation.upsert_points(points))
    return QdrantSets(shard)


def qdrant_client(_: Path) -> QdrantSets:
    client = pytest.importorskip("qdrant_client")
    from qdrant_client import models

    store = client.QdrantClient(":memory:")  # what a server answers, answered in this process
    faces = models.VectorParams(size=128, distance=models.Distance.COSINE)
    store.create_collection("photos", {"face": faces})
    points = [models.PointStruct(id=i, vector={"face": SCALED[i].tolist()}, payload=PAYLOADS[i])
              for i in range(len(PAYLOADS))]  # fmt: skip
    store.upsert("photos", points)
    with pytest.raises(InvalidInputError, match="give the name of one"):
        QdrantSets(store)
    return QdrantSets(store, "photos", vector="face")


ENGINES = [lance, qdrant_edge, qdrant_client]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SetIndex]:
    with SetIndex.create(tmp_path_factory.mktemp("index") / "index", dim=128) as index:
        index.add(*WORLD.part(0, len(WORLD.ids)))
        yield index


@pytest.fixture(scope="module", params=ENGINES, ids=lambda make: make.__name__)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ExternalSets:
    make: Callable[[Path], ExternalSets] = request.param
    return make(tmp_path_factory.mktemp("engine"))


def assert_alike(sets: ExternalSets, index: SetIndex, **options: Any) -> None:
    wanted = index.search(QUERY, k=60, **options)
    found = sets.search(QUERY, k=60, candidates=len(OWNERS), **options)
    assert [hit.id for hit in found] == [hit.id for hit in wanted], options
    assert [h.score for h in found] == pytest.approx([h.score for h in wanted], abs=1e-6)
    for one, other in zip(found, wanted, strict=True):
        assert [m.element for m in one.matches] == [m.element for m in other.matches], (one.id, options)


OF_SETS: list[dict[str, Any]] = [{}, {"at_least": 2}, {"only": True}, {"without": WORLD.people[:1]}]


def test_few_lines_connect_another_engine(index: SetIndex) -> None:
    for options in OF_SETS:
        assert_alike(OwnSets(), index, **options)
    best = index.search(QUERY, k=1)[0]
    assert OwnSets().search(QUERY, k=1, candidates=5)[0].id == best.id
    twice = [np.stack([row, row]) for row in QUERY]
    for examples in ("aggregate", "max"):
        assert OwnSets().search(twice, k=5, examples=examples) == OwnSets().search(QUERY, k=5)
    with pytest.raises(InvalidInputError, match="where must map columns to conditions"):
        OwnSets().search(QUERY, where=[("year", 2000)])  # type: ignore[arg-type]


@pytest.mark.soak
def test_engines_answer_like_an_index(engine: ExternalSets, index: SetIndex) -> None:
    conditions: list[dict[str, Any]] = [
        {"year": {">=": 2010, "<": 2015}},
        {"year": {">": 2010, "<=": 2015, "!=": 2012}},
        {"year": 2003, "place": "p0"},
        {"place": ["p0", "p'2"]},
        {"place": {"prefix": "p", "!=": "p1"}},
        {"year": [2003, 2004.0]},
        {"place": []},
        {"place": "x"},
    ]
    for options in [*OF_SETS, *({"where": where} for where in conditions)]:
        assert_alike(engine, index, **options)
    assert engine.search(QUERY, k=1, candidates=5)[0].id == index.search(QUERY, k=1)[0].id


@pytest.mark.soak
def test_what_an_engine_cannot_do_is_said(engine: ExternalSets) -> None:
    says = "no order of texts" if isinstance(engine, QdrantSets) else "unknown column 'nope': valid are"
    where = {"place": {"<": "p1"}} if isinstance(engine, QdrantSets) else {"nope": 1}
    with pytest.raises(InvalidInputError, match=says):
        engine.search(QUERY, where=where)
    if isinstance(engine, LanceSets):
        with pytest.raises(InvalidInputError, match="LanceDB: "):
            engine.search(QUERY, where={"year": "x"})
        with pytest.raises(InvalidInputError, match="expected a list of floats"):
            LanceSets(engine._table, vector="year")
    if isinstance(engine, QdrantSets):
        with pytest.raises(InvalidInputError, match="points have no 'photo'"):
            QdrantSets(engine._store, engine._collection, item="photo", vector=engine._vector)
