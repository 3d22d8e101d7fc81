from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from setnet.collect import AnnotationQueue, Answer, CollectRun
from tests.support import command_line
from tests.support.invented_collect import invented_run, name_of


def setnet(*arguments: object) -> subprocess.CompletedProcess[str]:
    done: subprocess.CompletedProcess[str] = command_line.setnet(None, "collect", *arguments)
    return done


@pytest.fixture
def run(tmp_path: Path) -> CollectRun:
    made: CollectRun = invented_run(tmp_path, 3, [(0, 1, 10), (1, 2, 11), (0, 2, 12)])
    return made


def test_the_way_from_labels_to_a_data_set(run: CollectRun, tmp_path: Path) -> None:
    for row in run.manifest("labels").rows():
        Path(row["photo"]).write_bytes(b"photo")
    refused = setnet("result", run.path, "--out", tmp_path / "set")
    assert refused.returncode == 2
    assert "3 of 3 faces wait for a person" in refused.stderr
    queue = AnnotationQueue(run)
    for number, answer in enumerate((Answer("unknown"), Answer("unknown"), Answer("name", name_of(1)))):
        queue.answer(number, answer)
    assert "3 of 3 questions answered" in setnet("status", run.path).stdout
    assert setnet("begin", run.path, "--split", "0,0,1").returncode == 0
    made = setnet("result", run.path, "--out", tmp_path / "set")
    assert made.returncode == 0, made.stderr
    assert "3 of 3 kept" in made.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "nowhere"), "holds no run"),
        (("begin", "new"), "--portraits"),
        (("begin", "new", "--split", "a,b"), "0.5,0.1,0.4"),
    ],
)
def test_wrong_use_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = setnet(*arguments)
    assert found.returncode == 2
    assert message in found.stderr
    assert "Traceback" not in found.stderr
