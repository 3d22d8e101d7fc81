"""`setnet index`: find the faces in folders of photos, once, again and again, or on a schedule."""

from setnet.cli.index.command import app as app

__all__ = ["app"]
