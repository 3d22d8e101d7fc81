from .engine import Hit as Hit
from .engine import Match as Match
from .engine import Report as Report
from .engine import SetIndex as SetIndex
from .engine import Stats as Stats
from .errors import SetNetError as SetNetError
from .heads import SetNet as SetNet
from .library import Library as Library

__version__: str
