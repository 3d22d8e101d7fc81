"""Files of an index are for their owner alone, or for the owner's group too."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np
import pytest

from setnet import SetIndex


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """An index that everybody can read."""
    path = tmp_path / "index"
    with SetIndex.create(path, 4) as index:
        index.add(["a"], np.eye(1, 4, dtype=np.float32), [1])
    for part in (path, *path.rglob("*")):
        part.chmod(0o755 if part.is_dir() else 0o644)
    return path


def modes(path: Path) -> set[int]:
    return {part.stat().st_mode & 0o777 for part in (path, *path.rglob("*"))}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_files_that_others_could_read_are_restricted_with_one_notice(
    shared: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "setnet.engine"):
        SetIndex.open(shared, read_only=True).close()
        assert modes(shared) == {0o755, 0o644}
        SetIndex.open(shared).close()
        SetIndex.open(shared).close()
    assert [("could be read by others" in m, str(shared) in m) for m in caplog.messages] == [(True, True)]
    assert modes(shared) == {0o700, 0o600}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_an_index_shared_with_a_group_stays_shared(shared: Path, caplog: pytest.LogCaptureFixture) -> None:
    for part in (shared, *shared.rglob("*")):
        part.chmod(0o750 if part.is_dir() else 0o640)
    for _ in range(2):  # what the first writer adds follows at the next opening
        SetIndex.open(shared).close()
    assert modes(shared) == {0o750, 0o640}
    assert not caplog.messages


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_a_new_index_in_a_folder_that_was_there_is_private(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "i").mkdir()
    (tmp_path / "i").chmod(0o755)
    SetIndex.create(tmp_path / "i", 4).close()
    assert modes(tmp_path / "i") == {0o700, 0o600}
    assert not caplog.messages
