"""Writes the API reference of `make docs`: one page per room with what its ``__init__.pyi`` exports."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

SOURCE = Path(__file__).parents[1] / "src"
PACKAGES = ["setnet"] + [
    f"setnet.{room}" for room in ("faces", "sets", "index", "library", "learn", "evaluate", "web")
]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages at the end of the navigation."""
    config.nav = [*(config.nav or []), {"API": [{name: f"api/{name}.md"} for name in PACKAGES]}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, which exist nowhere on disk."""
    for package in PACKAGES:
        files.append(File.generated(config, f"api/{package}.md", content=page(package)))
    return files


class Doctests(griffe.Extension):
    """Shows the examples of docstrings as code; without this Markdown takes ``>>>`` for quotations."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence each example, from its first ``>>>`` to the next empty line."""
        if obj.docstring:
            text = obj.docstring.value
            obj.docstring.value = re.sub(
                r"^>>> .*?(?=\n\n|\Z)", r"```python\n\g<0>\n```", text, flags=re.S | re.M
            )


def page(package: str) -> str:
    """Return the Markdown page of one package: its docstring, then every exported name."""
    folder = SOURCE.joinpath(*package.split("."))
    summary = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    return "\n\n".join([f"# {package}", summary, *exported(package, folder)])


def exported(package: str, folder: Path) -> list[str]:
    """Return a reference to each name that a package's stub imports."""
    stub = ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8"))
    return [
        f"::: {package}.{node.module}.{alias.name}\n    options:\n      heading: {alias.asname or alias.name}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
