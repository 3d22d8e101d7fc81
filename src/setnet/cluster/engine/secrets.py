"""The key with which the processes of a cluster know each other: made once, readable by its owner alone."""

from __future__ import annotations

import time
from pathlib import Path

from distributed import Security

from setnet.durable import replace_file
from setnet.errors import ClusterError

_KEY = "key.pem"
_RENEWED = 300 * 24 * 3600  # seconds: the engine's certificates last a year


def make_key(root: Path) -> None:
    """Make the key of a cluster, unless there is one that will last; whoever holds it may run code in it."""
    path = root / _KEY
    if path.exists() and time.time() - path.stat().st_mtime < _RENEWED:
        return
    made = Security.temporary()
    replace_file(path, (made.tls_client_key + made.tls_client_cert).encode())


def security_of(root: Path) -> Security:
    """Return what encrypts and authenticates all connections of a cluster, in both directions."""
    path = root / _KEY
    if not path.is_file():
        raise ClusterError(f"{path} is missing: `setnet cluster start` makes it, on storage that all share")
    if path.stat().st_mode & 0o077:
        raise ClusterError(f"others can read {path}, which lets them run code here: chmod 600 it")
    roles = ("client", "scheduler", "worker")
    files = {f"tls_{role}_{what}": str(path) for role in roles for what in ("key", "cert")}
    return Security(tls_ca_file=str(path), require_encryption=True, **files)
