"""`setnet index --redescribe` as a user runs it."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from setnet.faces import write_model_entry
from small_models import write_small_model


@pytest.fixture
def library(made: Any, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.library, tmp_path / "library"))


@pytest.fixture
def small(tmp_path: Path) -> str:
    model = write_small_model(tmp_path / "small.onnx")
    return str(write_model_entry(model, name="small", dim=24, calibration={"w": 20.0, "b": -8.0}))


def setnet(library: Path, *words: object) -> subprocess.CompletedProcess[str]:
    from setnet.cli.app import run

    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["setnet", *map(str, words)])
        patch.setenv("SETNET_LIBRARY", str(library))
        with pytest.raises(SystemExit) as left:
            run()
    return subprocess.CompletedProcess([], int(left.value.code or 0), out.getvalue(), err.getvalue())


def test_the_descriptor_of_a_library_is_changed(library: Path, small: str) -> None:
    refused = setnet(library, "index", "--descriptor", small)
    assert refused.returncode == 2
    assert f"--redescribe --descriptor {small}" in refused.stderr
    done = setnet(library, "index", "--redescribe", "--descriptor", small, "--workers", 0)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"5 photos with 8 faces described by {small}, in ")
    status = json.loads(setnet(library, "status", "--json").stdout)
    assert (status["dim"], status["photos"], status["settings"]["descriptor"]) == (24, 5, small)
    again = setnet(library, "index", "--redescribe", "--descriptor", small, "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["is_done"]


def test_what_does_not_go_with_it_is_refused(library: Path, small: str, tmp_path: Path) -> None:
    for words in (["--quick"], ["--detector", "yunet"], ["--min-face", "60"], ["--retry"], [tmp_path]):
        done = setnet(library, "index", "--redescribe", "--descriptor", small, *words)
        assert done.returncode == 2
        assert "leave out" in done.stderr
    assert setnet(library, "index", "--redescribe", "--descriptor", "nobody").returncode == 2
    assert setnet(tmp_path / "absent", "index", "--redescribe").returncode == 2


def test_what_could_not_be_described_is_listed(made: Any, tmp_path: Path, small: str) -> None:
    from setnet.library import Library

    photos = Path(shutil.copytree(made.photos, tmp_path / "photos"))
    with Library.create(tmp_path / "own") as library:
        library.index([photos], workers=0)
        library.add_person("Anna", [str(photos / "2016" / "alone.jpg")])
    photo = photos / "2016" / "pair.jpg"
    photo.write_bytes(photo.read_bytes() + b"x")
    done = setnet(tmp_path / "own", "index", "--redescribe", "--descriptor", small, "--workers", 0, "--json")
    assert done.returncode == 1
    facts = json.loads(done.stdout)
    assert facts["failed"] == [
        {"photo": str(photo), "reason": "its content has changed since it was indexed"}
    ]
    assert (facts["examples_from_photos"], facts["lost"]) == (1, [])
