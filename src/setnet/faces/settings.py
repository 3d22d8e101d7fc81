"""How faces are found and described, and what the similarities of a descriptor mean."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from setnet.durable import replace_file
from setnet.errors import InvalidInputError, check_number, choice_error
from setnet.faces.photo import DEFAULT_MAX_PIXELS
from setnet.faces.registry import (
    calibration_file,
    is_file_name,
    model_entry,
    models_folder,
)

# What `quick` costs in faces and true matches is in docs/performance.md.
PRESETS: Mapping[str, Mapping[str, Any]] = {"default": {}, "quick": {"detector": "cascade"}}


@dataclass(frozen=True)
class FaceSettings:
    """Settings of `extract_faces`.

    Attributes
    ----------
    detector, descriptor
        Names in the model registry.
    min_face
        Faces smaller than this many photo pixels are left out.
    threshold
        Detector score a face needs, 0 to 1; None for the detector's own.
    longest_side
        Larger photos are searched at this length; faces are still cropped from the full size.
    min_sharpness
        Faces with less fine detail are left out (see `Quality.sharpness`).
    max_turn
        Faces turned further than this many degrees to a side are left out.
    max_pixels
        Photos with more are refused.

    >>> FaceSettings(min_face=60).to_dict()["min_face"]
    60
    """

    detector: str = "mtcnn"
    descriptor: str = "sface"
    min_face: float = 40
    threshold: float | None = None
    longest_side: int = 1600
    min_sharpness: float = 0.0
    max_turn: float = 90.0
    max_pixels: int = DEFAULT_MAX_PIXELS

    def __post_init__(self) -> None:
        for name in ("detector", "descriptor"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInputError(f"{name} must be a name, not {getattr(self, name)!r}")
        for name, low, high in (
            ("min_face", 1, 100_000),
            ("threshold", 0, 1),
            ("longest_side", 32, 100_000),
            ("min_sharpness", 0, 10),
            ("max_turn", 0, 180),
            ("max_pixels", 1, 10**12),
        ):
            if name != "threshold" or self.threshold is not None:
                check_number(name, getattr(self, name), low, high)

    @classmethod
    def preset(cls, name: str, **others: Any) -> FaceSettings:
        """Return the settings of a preset, `default` or `quick`, with others beside its own.

        >>> FaceSettings.preset("quick", min_face=60).detector
        'cascade'
        """
        if name not in PRESETS:
            raise choice_error("preset", name, sorted(PRESETS))
        return cls(**{**PRESETS[name], **others})

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a dict that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FaceSettings:
        """Return the settings in a dict; unknown names are refused."""
        if not isinstance(values, Mapping):
            raise InvalidInputError(f"face settings must be names with values, not {values!r:.80}")
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise InvalidInputError(
                f"unknown face setting {', '.join(map(repr, unknown))}: valid are {', '.join(sorted(known))}"
            )
        return cls(**values)


_LOG = logging.getLogger("setnet.faces")


def load_calibration(descriptor: str, part: str | None = None) -> Mapping[str, Any]:
    """Return the calibration of a descriptor model, or a part of it that is a mapping of its own.

    Where the model has none, the default model's is returned, with a warning.
    """
    default = FaceSettings().descriptor
    found: Mapping[str, Any]
    for name in (descriptor, default):
        calibration = model_entry(name, "descriptor").calibration
        if found := calibration if part is None else calibration.get(part, {}):
            break
        _LOG.warning(
            "the model %s has no calibration: matches are judged as if it were %s. `setnet models calibrate` "
            "fits one to labelled faces",
            model_entry(name, "descriptor").name,
            default,
        )
    return found


def store_calibration(descriptor: str, calibration: Mapping[str, Any]) -> Path:
    """Keep numbers that were fitted for a model on this machine; they come before its entry's own."""
    own = descriptor.endswith(".toml")
    folder = Path(descriptor).expanduser().parent if own else models_folder()
    name = model_entry(descriptor, "descriptor").name
    if not is_file_name(name):
        raise InvalidInputError(
            f"model {name!r}: a calibration is stored under the model's name, which must be letters, digits, "
            "dots, dashes and underscores"
        )
    path = calibration_file(name, folder)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(dict(calibration), indent=2).encode())
    return path
