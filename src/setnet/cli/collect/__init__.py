"""`setnet collect`: a labelled data set out of an archive of photos with captions."""

from setnet.cli.collect.command import app

__all__ = ["app"]
