"""`setnet demo`: the whole road in one command."""

from setnet.cli.demo.command import app

__all__ = ["app"]
