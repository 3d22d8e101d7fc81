from .errors import SetNetError as SetNetError
from .index import Hit as Hit
from .index import Match as Match
from .index import Report as Report
from .index import SetIndex as SetIndex
from .index import Stats as Stats
from .library import Library as Library
from .sets import SetNet as SetNet
from .sets import heads as heads

__version__: str
