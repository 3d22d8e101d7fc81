"""Opening a cluster as it is: through its workers while it runs, else in this process."""

from __future__ import annotations

from pathlib import Path

from setnet.cluster.cluster_index import ClusterIndex
from setnet.cluster.engine.head_file import is_running
from setnet.cluster.engine.protocol import Engine
from setnet.cluster.storage.cluster_file import NAME, ClusterFile
from setnet.errors import ClusterError, NotAnIndexError


def is_cluster(path: Path) -> bool:
    """Return whether a folder holds a cluster."""
    return (path / NAME).is_file()


def cluster_folder(path: str | Path) -> Path:
    """Return the folder of a cluster, from it or from a photo library whose index it is."""
    given = Path(path).expanduser().absolute()
    for folder in (given, given / "index"):
        if is_cluster(folder):
            return folder
    raise NotAnIndexError(f"{given} holds no cluster: `setnet cluster create {given}` makes one")


def require_running(path: Path) -> None:
    """Raise unless the head of a cluster was started, and not stopped since."""
    if not is_running(path):
        raise ClusterError(f"the cluster {path} is not running: start it with `setnet cluster start`")


def open_cluster(path: Path, *, unpublished: bool = False) -> ClusterIndex:
    """Open a cluster through its workers when its head was started, and not stopped since, else here."""
    ClusterFile.read(path)
    engine: Engine | None = None
    if is_running(path):
        from setnet.cluster.engine.dask_engine import DaskEngine  # slow to import, and an extra

        engine = DaskEngine(path)
    return ClusterIndex.open(path, engine, unpublished=unpublished)
