"""`head.json`: where the head of a running cluster listens, and which setnet it is."""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from setnet import __version__
from setnet.durable import replace_file
from setnet.errors import ClusterError

NAME = "head.json"
_ANSWER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class HeadFile:
    """The head of a cluster: its address, the cluster it serves, its setnet and its process."""

    address: str
    cluster: str
    version: str
    host: str
    process: int

    @classmethod
    def write(cls, root: Path, address: str, cluster: str) -> HeadFile:
        """Write where a head listens, for whoever wants to join or search."""
        head = cls(address, cluster, __version__, socket.gethostname(), os.getpid())
        replace_file(root / NAME, json.dumps(asdict(head), indent=1).encode())
        return head

    @classmethod
    def read(cls, root: Path, cluster: str) -> HeadFile:
        """Return the head of a cluster; an error says why this process does not fit it."""
        try:
            head = cls(**json.loads((root / NAME).read_bytes()))
        except FileNotFoundError:
            raise ClusterError(
                f"the cluster {root} is not running: start it with `setnet cluster start`"
            ) from None
        except (ValueError, TypeError) as error:
            raise ClusterError(f"{root / NAME} is damaged ({error}): start the head again") from None
        if head.cluster != cluster:
            raise ClusterError(
                f"the head at {head.address} serves another cluster than the one in {root}: stop it, then "
                "`setnet cluster start` here"
            )
        if head.version != __version__:
            raise ClusterError(
                f"the head at {head.address} is setnet {head.version}, this is {__version__}: install the "
                "same version on all machines"
            )
        return head

    @classmethod
    def refuse_second(cls, root: Path) -> None:
        """Raise when a head of the cluster listens already: two would share its workers."""
        with suppress(OSError, ValueError, KeyError):
            address = json.loads((root / NAME).read_bytes())["address"]
            host, _, port = address.rpartition("/")[2].rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
            raise ClusterError(
                f"the cluster {root} runs already, its head listens at {address}: stop it first"
            )

    def remove(self, root: Path) -> None:
        """Remove the file, unless another head has replaced it."""
        path = root / NAME
        if path.exists() and json.loads(path.read_bytes()).get("process") == self.process:
            path.unlink()


def is_running(root: Path) -> bool:
    """Return whether a head was started and not stopped since."""
    return (root / NAME).is_file()
