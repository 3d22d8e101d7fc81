"""Doors whose names are imported on first use: nobody pays for what is not called.

A package lists its public names once, as the imports of its ``__init__.pyi``; type checkers read the same
file. (`lazy_loader` does this too; ours also says which extra to install when a library is missing.)
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from importlib.resources import files
from typing import Any

from setnet.errors import ModelError


def lazy(package: str, extra: str = "") -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package with an ``__init__.pyi``.

    ``extra`` names the optional dependencies without which its modules cannot be imported.
    """
    stub = ast.parse(files(package).joinpath("__init__.pyi").read_text(encoding="utf-8"))
    homes = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def getattr_(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, own_name = homes[name]
        try:
            return getattr(import_module(f"{package}.{module}"), own_name)
        except ModuleNotFoundError as error:
            if not extra or (error.name or "").startswith("setnet"):
                raise
            raise ModelError(
                f"{package} needs {error.name}: install it with `pip install 'setnet[{extra}]'`"
            ) from error

    names = sorted(homes)
    return getattr_, lambda: names, names
