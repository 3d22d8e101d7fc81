"""`PyLateIndex`: documents as sets of token vectors, for the retrievers of PyLate."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine import Mode, SetIndex

Floats = NDArray[np.float32]
BATCH = 2000  # documents stored in one transaction


class PyLateIndex:
    """An index for `pylate.retrieve.ColBERT`: the exact sum of maxima (MaxSim), on disk.

    It has what PyLate's base class of indexes asks for, and needs no PyLate itself. Documents can be added,
    replaced and removed at any time; vectors are stored as float16.

    Parameters
    ----------
    path
        Folder of the index; it is made with the first documents.
    override
        Whether an index that is there is deleted.
    mode
        ``"exact"``, or ``"fast"`` for inverted lists, which ``index.sets.compact()`` makes.

    Examples
    --------
    >>> import tempfile
    >>> index = PyLateIndex(tempfile.mkdtemp() + "/tokens")
    >>> index = index.add_documents(["one", "other"], [np.eye(3)[:2], np.eye(3)[1:]])
    >>> index([np.eye(3)[:2]], k=1)
    [[{'id': 'one', 'score': 2.0}]]
    >>> index.close()
    """

    is_end_to_end_index = True  # answers are ranked documents, not tokens

    def __init__(self, path: str | Path, override: bool = False, mode: Mode = "exact") -> None:
        self.path, self.mode = Path(path), mode
        self.sets: SetIndex | None = None
        if self.path.exists() and any(self.path.iterdir()):
            if override:
                SetIndex.open(self.path).close()  # an error unless it is an index
                shutil.rmtree(self.path)
            else:
                self.sets = SetIndex.open(self.path)

    def close(self) -> None:
        """Close the index."""
        if self.sets is not None:
            self.sets.close()

    def add_documents(
        self,
        documents_ids: str | Sequence[str],
        documents_embeddings: Any,
        batch_size: int = BATCH,
    ) -> PyLateIndex:
        """Add documents, or replace those whose id is stored; one array or tensor of token vectors each."""
        ids = [documents_ids] if isinstance(documents_ids, str) else list(documents_ids)
        documents = _arrays(documents_embeddings)
        if self.sets is None and documents:
            dim = documents[0].shape[1]
            self.sets = SetIndex.open_or_create(self.path, dim, precision="float16", head="none")
        for at in range(0, len(documents), batch_size):
            assert self.sets is not None
            # The last batch takes all ids that are left: too many of them are an error.
            end = at + batch_size if at + batch_size < len(documents) else None
            self.sets.add(ids[at:end], documents[at:end])
        return self

    def remove_documents(self, documents_ids: Sequence[str]) -> PyLateIndex:
        """Remove documents; an id that is not stored is an error."""
        if self.sets is not None:
            self.sets.delete(list(documents_ids))
        return self

    def __call__(
        self,
        queries_embeddings: Any,
        k: int = 10,
        subset: Sequence[str] | Sequence[Sequence[str]] | None = None,
    ) -> list[list[dict[str, Any]]]:
        """Return the best k documents for each query, of all or of a subset: one list of ids, or one each."""
        queries, sets = _arrays(queries_embeddings), self.sets
        if sets is None:
            return [[] for _ in queries]
        if subset is None:
            found = sets.search_many(queries, k, self.mode, matching="maxsim")
        else:
            shared = [name for name in subset if isinstance(name, str)]
            some = [shared] * len(queries) if shared or not subset else subset
            known = [[name for name in names if name in sets] for names in some]
            pairs = zip(queries, known, strict=True)
            found = [sets.rerank(query, names, k, matching="maxsim") for query, names in pairs]
        return [
            [{"id": name, "score": score} for name, score in zip(hits.ids, hits.scores.tolist(), strict=True)]
            for hits in found
        ]

    def get_documents_embeddings(self, documents_ids: Sequence[Sequence[str]]) -> list[list[Floats]]:
        """Return the token vectors of lists of documents."""
        if self.sets is None:
            return [[] for _ in documents_ids]
        return [[self.sets.elements(name) for name in names] for names in documents_ids]


def _arrays(embeddings: Any) -> list[Floats]:
    """Return one array per document or query, without the vectors of zeros that fill up a batch."""
    if getattr(embeddings, "ndim", 3) == 2:
        embeddings = [embeddings]
    tensors = (one.detach().cpu().float() if hasattr(one, "detach") else one for one in embeddings)
    arrays = (np.asarray(one, np.float32) for one in tensors)
    return [one[one.any(axis=1)] for one in arrays]
