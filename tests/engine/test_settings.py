"""Settings read from disk are trusted in nothing: whatever they say, they are valid or a `StorageError`."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet import SetIndex
from setnet.engine.settings import Settings
from setnet.errors import StorageError

SOUND = Settings.new(8, logistic=(20.0, -8.0), head="mean", set_bits=8)[0].as_json()
NUMBERS = st.sampled_from([0, -1, 1, 8, 4096, 4097, 10**12, 10**400, 0.5, float("nan"), float("inf"), True])
ANY = st.recursive(
    st.none() | NUMBERS | st.text(max_size=5) | st.sampled_from(["float32", "float64"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("wb"), inner),
    max_leaves=4,
)
DROPPED = object()


def changed(stored: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return settings with one entry replaced or dropped; ``sets.bits`` is an entry of an entry."""
    outer, _, inner = key.partition(".")
    copy = json.loads(json.dumps(stored))
    place, name = (copy[outer], inner) if inner else (copy, outer)
    place.pop(name)
    if value is not DROPPED:
        place[name] = value
    return dict(copy)


KEYS = [*SOUND, *(f"sets.{name}" for name in SOUND["sets"])]


@given(st.sampled_from(KEYS), ANY | st.just(DROPPED))
def test_a_changed_entry_is_valid_or_a_storage_error(key: str, value: Any) -> None:
    try:
        settings = Settings.of_json(changed(SOUND, key, value))
    except StorageError:
        return
    assert 1 <= settings.shape.dim <= 4096
    assert settings.shape.precision in ("float32", "float16")
    assert settings.logistic.w > 0
    assert np.isfinite([settings.logistic.b, settings.set_logistic.b]).all()
    if settings.shape.sets:
        assert settings.shape.sets.row_bytes > 0
    assert Settings.of_json(settings.as_json()) == settings


@given(ANY)
def test_something_else_instead_of_settings_is_a_storage_error(stored: Any) -> None:
    with pytest.raises(StorageError, match="settings"):
        Settings.of_json(stored)


BAD = {
    "no JSON": "{",
    "deep": "[" * 100_000,
    "a list": "[]",
    "dim 0": json.dumps({**SOUND, "dim": 0}),
    "dim 10^12": json.dumps({**SOUND, "dim": 10**12}),
    "NaN": json.dumps({**SOUND, "logistic": [float("nan"), 0]}),
    "precision": json.dumps({**SOUND, "precision": "float8"}),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("key", ["settings", "generation", "next_seq"])
def test_a_catalogue_with_bad_settings_is_a_storage_error(tmp_path: Path, kind: str, key: str) -> None:
    with SetIndex.create(tmp_path / "i", 8) as index:
        index.add(["a"], np.ones((1, 8)), [1])
    with sqlite3.connect(tmp_path / "i" / "catalog.sqlite") as db:
        db.execute("UPDATE meta SET value = ? WHERE key = ?", (BAD[kind], key))
    db.close()
    for read_only in (True, False):
        with pytest.raises(StorageError), SetIndex.open(tmp_path / "i", read_only) as index:
            index.search(np.ones((1, 8)))
    assert SetIndex.repair(tmp_path / "i").items == 1
