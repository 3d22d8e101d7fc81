"""What a cluster is and who serves it now."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from setnet.cluster.engine.head_file import HeadFile, is_running
from setnet.cluster.storage import published
from setnet.cluster.storage.cluster_file import ClusterFile
from setnet.cluster.storage.places import EpochFolder


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A cluster's shards, what searches see of them, and the head and workers that serve it.

    ``head`` is empty when the cluster was not started; ``workers`` have an address, a name and threads.
    """

    path: Path
    cluster: str
    epoch: int
    shards: int
    replicas: int
    items: int
    published: int
    head: str
    workers: list[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return the status for JSON."""
        return {**asdict(self), "path": str(self.path)}


def cluster_status(root: Path) -> ClusterStatus:
    """Return the status of a cluster; a head that was started and does not answer is an error."""
    file = ClusterFile.read(root)
    shown = published.latest(EpochFolder(root, file.epoch))
    head, workers = "", list[dict[str, Any]]()
    if is_running(root):
        from setnet.cluster.engine.dask_engine import DaskEngine

        head = HeadFile.read(root, file.cluster).address
        engine = DaskEngine(root)
        try:
            workers = engine.workers
        finally:
            engine.close()
    return ClusterStatus(
        path=root,
        cluster=file.cluster,
        epoch=file.epoch,
        shards=file.shards,
        replicas=file.replicas,
        items=shown.items,
        published=shown.number,
        head=head,
        workers=workers,
    )
