"""The calibration of a model: the numbers that turn similarities of its descriptors into matches.

Similarities of two models do not compare: SFace gives two people 0.35 once in ten thousand pairs, another
model 0.28. A model's entry therefore brings its own numbers as a plain mapping, `ModelEntry.calibration`:

threshold
    The similarity that two faces of different people reach at the false-match rate.
false_match_rate
    That rate.
w, b
    Of the score sigmoid(w s + b) of a pair of single faces.

What else is in it belongs to whoever reads it, and is a part of its own: a mapping in the mapping.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setnet.faces.face_settings import FaceSettings
from setnet.faces.registry.entry import ModelEntry
from setnet.faces.registry.models import model_entry, models_folder
from setnet.faces.registry.stored_calibration import write_calibration

_LOG = logging.getLogger("setnet.faces")


def calibration_of(descriptor: str, part: str | None = None) -> Mapping[str, Any]:
    """Return the calibration of a descriptor model, or a part of it that is a mapping of its own.

    Where the model has none, the default model's is returned, with a warning.
    """
    entry, default = model_entry(descriptor, "descriptor"), FaceSettings().descriptor
    if found := _part(entry, part):
        return found
    _LOG.warning(
        "the model %s has no calibration: matches are judged as if it were %s. `setnet models calibrate` "
        "fits one to labelled faces",
        entry.name,
        default,
    )
    return _part(model_entry(default, "descriptor"), part)


def _part(entry: ModelEntry, part: str | None) -> Mapping[str, Any]:
    if part is None:
        return entry.calibration
    found: Mapping[str, Any] = entry.calibration.get(part, {})
    return found


def store_calibration(descriptor: str, calibration: Mapping[str, Any]) -> Path:
    """Keep numbers that were fitted for a model on this machine; they come before its entry's own."""
    own = descriptor.endswith(".toml")
    folder = Path(descriptor).expanduser().parent if own else models_folder()
    return write_calibration(model_entry(descriptor, "descriptor").name, calibration, folder)
