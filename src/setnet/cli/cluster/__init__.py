"""`setnet cluster`: a library whose faces are kept and searched by many machines."""

from setnet.cli.cluster.command import app as app

__all__ = ["app"]
