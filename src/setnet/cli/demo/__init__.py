"""`setnet demo`: end-to-end in one command, on synthetic people."""

from setnet.cli.demo.command import app

__all__ = ["app"]
