"""Portraits: the main face of each is described; a file without a face is named and left out."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from setnet.collect.filtering.face_filter import read_faces
from setnet.collect.run.manifest import Row
from setnet.collect.run.packed import packed, unpacked
from setnet.collect.run.run_folder import CollectRun
from setnet.library import FolderScan, main_face


def portrait_rows(run: CollectRun, done: Collection[str], workers: int | None = None) -> Iterator[Row]:
    """Yield a row per portrait."""
    files: dict[str, str] = {}
    for person in run.manifest("names").kept():
        for file in FolderScan([os.fsencode(person["folder"])]).files():
            if (path := os.fsdecode(file.path)) not in done:
                files[path] = person["name"]
    for path, result in read_faces(run.settings, files, workers):
        row: Row = {"portrait": path, "name": files[path]}
        if result.reason is not None:
            yield row | {"kept": False, "reason": "cannot be read", "detail": result.reason}
        elif result.descriptors is None:
            yield row | {"kept": False, "reason": "no face"}
        else:
            yield row | {"kept": True, "descriptor": packed(result.descriptors[main_face(result)])}


def gallery(run: CollectRun) -> dict[str, NDArray[np.float32]]:
    """Return the descriptors of each person's portraits, (n, D), people in the order of the list."""
    found: dict[str, list[NDArray[np.float32]]] = {}
    for row in run.manifest("portraits").kept():
        found.setdefault(row["name"], []).append(unpacked(row["descriptor"]))
    return {name: np.stack(rows) for name, rows in found.items()}


def known_names(run: CollectRun) -> dict[str, tuple[str, ...]]:
    """Return the names of whom there is a portrait, with their aliases."""
    usable = {row["name"] for row in run.manifest("portraits").kept()}
    return {
        row["name"]: tuple(row["aliases"]) for row in run.manifest("names").kept() if row["name"] in usable
    }
