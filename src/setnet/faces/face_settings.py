"""Settings of face detection and description; a library stores those it was made with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from setnet.errors import InvalidInputError, one_of
from setnet.faces.photo.photo import DEFAULT_MAX_PIXELS

# What `quick` costs in faces and true matches is in docs/performance.md.
PRESETS: Mapping[str, Mapping[str, Any]] = {"default": {}, "quick": {"detector": "cascade"}}


@dataclass(frozen=True)
class FaceSettings:
    """Settings of `faces_of`.

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
            value = getattr(self, name)
            if value is None and name == "threshold":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise InvalidInputError(f"{name} must be a number from {low} to {high}, not {value!r}")

    @classmethod
    def preset(cls, name: str, **others: Any) -> FaceSettings:
        """Return the settings of a preset, `default` or `quick`, with others beside its own.

        >>> FaceSettings.preset("quick", min_face=60).detector
        'cascade'
        """
        if name not in PRESETS:
            raise one_of("preset", name, sorted(PRESETS))
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
