"""`setnet search`: find the photos that contain these people, and take them elsewhere."""

from setnet.cli.search.command import app

__all__ = ["app"]
