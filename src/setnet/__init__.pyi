from .engine import Hit as Hit
from .engine import Match as Match
from .engine import Report as Report
from .engine import SetIndex as SetIndex
from .engine import Stats as Stats
from .errors import SetNetError as SetNetError
from .library import Library as Library
from .sets import SetNet as SetNet
from .sets import heads as heads

__version__: str
