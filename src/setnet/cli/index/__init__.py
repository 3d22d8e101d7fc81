"""`setnet index`: find the faces in folders of photos, once or as they change."""

from setnet.cli.index.command import app as app

__all__ = ["app"]
