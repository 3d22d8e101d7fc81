"""Whatever others wrote is read, or refused with an error of our own; `make soak` tries a million inputs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.run import corpus_of, run
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_and_some_new_ones_have_no_finding(name: str) -> None:
    assert run(name, first=0, inputs=TARGETS[name].short, seconds=5.0).inputs > len(corpus_of(name))


def test_the_corpus_is_small() -> None:
    sizes = {name: sum(map(len, corpus_of(name))) for name in TARGETS}
    assert max(sizes.values()) < 50_000, sizes


@pytest.mark.soak
@pytest.mark.timeout(20_000)
def test_a_million_inputs_have_no_finding() -> None:
    assert sum(target.inputs for target in TARGETS.values()) >= 1_000_000
    ended = subprocess.run([sys.executable, "-m", "tests.fuzz"], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-5000:]
