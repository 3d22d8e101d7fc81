from .cluster_index import ClusterIndex as ClusterIndex
from .results import Hits as Hits
