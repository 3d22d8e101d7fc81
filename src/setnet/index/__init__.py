"""Vectors on disk become ranked hits: store, kernels, exact, fast and set search, tags."""

from setnet.index.results import Hit, Item, Match, Report, Stats
from setnet.index.search.options import MATCHINGS, MODES, PRECISIONS
from setnet.index.setindex import SetIndex

__all__ = ["MATCHINGS", "MODES", "PRECISIONS", "Hit", "Item", "Match", "Report", "SetIndex", "Stats"]
