"""Lets the tests of this folder import `learn_people`; pytest's importlib mode adds no paths by itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Sums in one order, and no quarrel over cores between workers."""
    torch.set_num_threads(1)
