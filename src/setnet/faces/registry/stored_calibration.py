"""Calibrations that were fitted on this machine, each in a file beside its model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from setnet.durable import replace_file
from setnet.errors import InvalidInputError, ModelError
from setnet.faces.registry.entry import ModelEntry
from setnet.faces.registry.metric import Metric

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def is_file_name(name: str) -> bool:
    """Tell whether a model of this name can have files called by it.

    >>> is_file_name("edgeface-s"), is_file_name("../x"), is_file_name("odd name")
    (True, False, False)
    """
    return _FILE_NAME.fullmatch(name) is not None


def calibration_file(name: str, folder: Path) -> Path:
    """Return where the numbers that were fitted for a model are kept."""
    return folder / f"{name}.calibration.json"


def with_stored_calibration(entry: ModelEntry, folder: Path) -> ModelEntry:
    """Return the entry with the numbers that were fitted on this machine in the place of its own."""
    path = calibration_file(entry.name, folder)
    if entry.kind != "descriptor" or not is_file_name(entry.name) or not path.is_file():
        return entry
    try:
        fitted = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot read this calibration ({error}): delete it") from error
    if not isinstance(fitted, dict):
        raise ModelError(f"{path}: a calibration is a JSON object, not {fitted!r:.60}: delete it")
    metric = fitted.pop("metric", None)
    entry = replace(entry, calibration=MappingProxyType({**entry.calibration, **fitted}))
    return entry if metric is None else replace(entry, metric=Metric.of(metric, entry.dim))


def write_calibration(name: str, calibration: Mapping[str, Any], folder: Path) -> Path:
    """Store numbers that were fitted for a model; return the file."""
    if not is_file_name(name):
        raise InvalidInputError(
            f"model {name!r}: a calibration is stored under the model's name, which must be letters, digits, "
            "dots, dashes and underscores"
        )
    path = calibration_file(name, folder)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(dict(calibration), indent=2).encode())
    return path
