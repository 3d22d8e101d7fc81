"""Who may read an index's files: its owner alone, or the owner's group too where the catalogue says so.

Vectors may be biometric data, so files are 0600 and folders 0700 whatever the umask. Where the catalogue is
readable for its group and nobody else, the others are 0640 and 0750.
"""

from __future__ import annotations

import logging
from pathlib import Path

from setnet.system import restrict_access

OWN = ("backup.json", "catalog.", "commits.log", "lock", "quarantine", "segments")
_LOG = logging.getLogger("setnet.index")


def restrict(root: Path) -> list[Path]:
    """Give all files and folders of an index their mode; return those that others could read."""
    shared = (root / "catalog.sqlite").stat().st_mode & 0o044 == 0o040
    top = list(root.iterdir())
    own = [path for path in top if path.name.startswith(OWN)]
    inside = [path for folder in own if folder.is_dir() for path in folder.iterdir()]
    # a folder that holds other things is not the index's alone
    return restrict_access([*own, *inside, *([root] if len(own) == len(top) else [])], group_readable=shared)


def restrict_with_notice(root: Path) -> None:
    """Restrict what others can read, and say so."""
    if opened := restrict(root):
        _LOG.warning(
            "%d files and folders of the index in %s could be read by others: no longer", len(opened), root
        )
