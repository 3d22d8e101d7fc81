from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from setnet.collect import CollectRun
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
    answers = [{"photo": f"{n:06}.jpg", "face": 3, "answer": "unknown"} for n in range(2)]
    answers.append({"photo": "000002.jpg", "face": 3, "answer": "name", "name": name_of(1)})
    answers.append({"photo": "gone.jpg", "face": 1, "answer": "unknown"})
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    taken = setnet("annotate", run.path, "--answers", tmp_path / "answers.jsonl", "--annotator", "ann")
    assert "3 answers stored" in taken.stdout
    assert "1 answers are about faces that are not asked" in taken.stderr
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
