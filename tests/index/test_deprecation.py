"""Names of the version before still work for one version, and say what replaces them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import Match, SetIndex

ROWS = np.eye(4, dtype=np.float32)


def test_people_is_the_old_name_of_query(tmp_path: Path) -> None:
    with SetIndex.create(tmp_path / "i", 4) as index:
        index.add(["a", "b"], ROWS[:3], [2, 1])
        search: Any = index.search
        rerank: Any = index.rerank
        with pytest.warns(DeprecationWarning, match=r"search\(people=...\) is deprecated: use query="):
            assert search(people=ROWS[:2], k=1) == search(ROWS[:2], k=1)
        with pytest.warns(DeprecationWarning, match="use query="):
            assert rerank(people=ROWS[:2], ids=["b"]) == rerank(query=ROWS[:2], ids=["b"])
        with pytest.raises(TypeError):
            search(query=ROWS[:1], people=ROWS[:1])


def test_person_is_the_old_name_of_query_element() -> None:
    match = Match(1, 0, 0.5)
    with pytest.warns(DeprecationWarning, match="use query_element"):
        assert match.person == 1
    assert match.to_dict() == {"person": 1, "query_element": 1, "element": 0, "similarity": 0.5}
