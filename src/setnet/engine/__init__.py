"""Vectors on disk become ranked hits: store, kernels, exact, fast and set search."""

from setnet.engine.collection import Collection
from setnet.engine.kernels.backend import level as kernel_level
from setnet.engine.kernels.greedy import greedy_matches
from setnet.engine.query import Mode, QueryLike, SearchOptions, VectorsLike
from setnet.engine.recovery import BackupReport, RepairReport
from setnet.engine.results import Contents, Hit, Item, Match, Report, Stats
from setnet.engine.setindex import SetIndex
from setnet.engine.settings import Shape

__all__ = [
    "BackupReport",
    "Collection",
    "Contents",
    "Hit",
    "Item",
    "Match",
    "Mode",
    "QueryLike",
    "RepairReport",
    "Report",
    "SearchOptions",
    "SetIndex",
    "Shape",
    "Stats",
    "VectorsLike",
    "greedy_matches",
    "kernel_level",
]
