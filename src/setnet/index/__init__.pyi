from .kernels.backend import level as kernel_level
from .kernels.greedy import greedy_matches as greedy_matches
from .results import Hit as Hit
from .results import Item as Item
from .results import Match as Match
from .results import Report as Report
from .results import Stats as Stats
from .search.options import MATCHINGS as MATCHINGS
from .search.options import MODES as MODES
from .search.options import PRECISIONS as PRECISIONS
from .setindex import SetIndex as SetIndex

__all__ = ["kernel_level"]
