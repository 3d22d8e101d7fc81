"""`setnet people`: save people by name, mend them, undo what was done."""

from setnet.cli.people.command import app as app

__all__ = ["app"]
