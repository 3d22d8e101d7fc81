"""Lets the tests import the targets as `tests.fuzz`: pytest's importlib mode adds no paths by itself."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
collect_ignore = ["guided.py"]
