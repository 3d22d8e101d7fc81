"""Copies what searches of a cluster see to another folder, which then is a cluster too."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

from setnet.cluster.storage import published
from setnet.cluster.storage.cluster_file import ClusterFile
from setnet.cluster.storage.places import EpochFolder
from setnet.cluster.storage.shard_writer import code_centre, copy_by_links, fix_code_centre
from setnet.durable import storage_errors
from setnet.errors import InvalidInputError
from setnet.index import BackupReport, SetIndex

_VERSION = "000000-000001"


def copy_cluster(root: Path, to: Path) -> BackupReport:
    """Copy the latest published versions, which never change, to a folder that is new or empty.

    The copy is a cluster from the moment its `cluster.json` is written, which is the last step. It has a name
    and an epoch of its own, so that no process of the original takes it for that.
    """
    if to.exists() and any(to.iterdir()):
        raise InvalidInputError(f"{to} is not empty: copy a cluster to a new folder")
    file = ClusterFile.read(root)
    copied = replace(file, cluster=secrets.token_hex(8), epoch=file.epoch + 1, growing=False)
    old, new = EpochFolder(root, file.epoch), EpochFolder(to, copied.epoch)
    reports, versions = list[BackupReport](), list[published.Version]()
    with storage_errors(to, "cannot back up: "):
        to.mkdir(mode=0o700, parents=True, exist_ok=True)
        new.path.mkdir(mode=0o700)
        for shard, version in enumerate(published.latest(old).versions):
            folder = new.shard(shard)
            folder.mkdir(mode=0o700)
            (folder / "versions").mkdir(mode=0o700)
            with SetIndex.open(old.version(shard, version.name), read_only=True) as index:
                reports.append(index.backup(folder / "work-000000"))
            with SetIndex.open(folder / "work-000000", read_only=True) as index:
                items = copy_by_links(index, folder / "versions" / _VERSION, sealed=True)
            versions.append(published.Version(_VERSION, items))
        if versions:
            published.publish(new, versions)
        if (centre := code_centre(root)) is not None:
            fix_code_centre(to, centre)
        copied.write(to)
    return BackupReport(
        sum(report.items for report in reports),
        sum(report.copied_segments for report in reports),
        0,
        sum(report.copied_bytes for report in reports),
    )
