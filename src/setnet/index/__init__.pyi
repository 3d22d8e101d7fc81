from .graph.cells import cells_of as cells_of
from .graph.linkage import Apart as Apart
from .graph.linkage import Clusters as Clusters
from .graph.linkage import LinkageRule as LinkageRule
from .graph.linkage import link as link
from .graph.neighbours import Neighbours as Neighbours
from .graph.neighbours import nearest_neighbours as nearest_neighbours
from .kernels.backend import level as kernel_level
from .kernels.greedy import greedy_matches as greedy_matches
from .recovery.backup import BackupReport as BackupReport
from .recovery.repair import RepairReport as RepairReport
from .results import Hit as Hit
from .results import Item as Item
from .results import Match as Match
from .results import Report as Report
from .results import Stats as Stats
from .search.known_pairs import KnownPair as KnownPair
from .search.options import MATCHINGS as MATCHINGS
from .search.options import MODES as MODES
from .search.options import SearchOptions as SearchOptions
from .search.query import QueryLike as QueryLike
from .search.ranked_items import RankedItems as RankedItems
from .search.scoring import Scoring as Scoring
from .setindex import SetIndex as SetIndex
from .settings import PRECISIONS as PRECISIONS
from .storage.catalog_access import ReadAccess as ReadAccess

__all__ = ["kernel_level"]
