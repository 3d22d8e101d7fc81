"""What an index holds and what it costs on disk."""

from __future__ import annotations

from setnet.index.kernels import backend
from setnet.index.reader import IndexReader
from setnet.index.results import Stats
from setnet.index.storage.shape import SetSpec


def stats_of(reader: IndexReader) -> Stats:
    """Return the numbers of an open index, its size file by file."""
    with reader.reading() as catalog:
        sql = (
            "SELECT count(*), ifnull(sum(elements - deleted_elements), 0), ifnull(sum(deleted), 0) "
            "FROM segments"
        )
        ((segments, elements, deleted),) = catalog.rows((int, int, int), sql)
        items = catalog.living_items()
    files = sorted(p for p in reader.path.rglob("*") if p.is_file())
    sizes = {str(p.relative_to(reader.path)): p.stat().st_size for p in files if p.exists()}
    shape = reader.settings.shape
    sets = shape.sets or SetSpec("none", 0, 0)
    return Stats(
        items=items, elements=elements, segments=segments, deleted=deleted,
        bytes_by_file=sizes, dim=shape.dim, precision=shape.precision, set_vectors=sets.name,
        set_dim=sets.dim, set_bits=sets.bits, kernels=backend.level(),
    )  # fmt: skip
