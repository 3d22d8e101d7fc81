"""Settings of training: presets in TOML files, changed by name."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from setnet.errors import InvalidInputError, choice_error

PRESETS = Path(__file__).parent / "presets"


@dataclass(frozen=True)
class BackboneSettings:
    """Which backbone; `size` and `width` are for ``small``, `weights` is a VGGFace2 file to start from.

    `recompute` trades a third more time for a fifth of the memory (the paper's networks).
    """

    name: str = "descriptors"
    dim: int = 128
    size: int = 112
    width: float = 1.0
    weights: str = ""
    recompute: bool = False


@dataclass(frozen=True)
class AggregatorSettings:
    """Which aggregator; `alpha` 0 means chosen from the data, `start_sets` is how many sets the PCA sees."""

    name: str = "netvlad"
    dim: int = 128
    clusters: int = 8
    alpha: float = 0.0
    start_sets: int = 4000


@dataclass(frozen=True)
class AugmentSettings:
    """Faces at `short_side` pixels, a random crop of the backbone's size, flip, rotation in degrees."""

    short_side: int = 128
    flip: bool = True
    rotation: float = 10.0


@dataclass(frozen=True)
class Schedule:
    """SGD: the rate is divided by 10 at each of `drops` (shares of `steps`).

    `precision` bfloat16 halves the networks' memory and suits GPUs; weights and losses stay float32.
    `validate` people are held out: each checkpoint is judged by how they are found, the best is the result.
    """

    steps: int = 1000
    rate: float = 0.001
    momentum: float = 0.9
    weight_decay: float = 0.001
    drops: tuple[float, ...] = (0.6, 0.85)
    clip: float = 0.0
    save_every: int = 200
    log_every: int = 10
    precision: str = "float32"
    validate: int = 0


@dataclass(frozen=True)
class PretrainSettings(Schedule):
    """Softmax pre-training on single faces; `freeze` trains the last layer only."""

    batch: int = 84
    freeze: bool = False


@dataclass(frozen=True)
class SetSettings(Schedule):
    """Set training: `identities` people per batch, one set face and one query face of each.

    `sizes` are the set sizes mixed in a batch; `freeze` trains the head only; `freeze_norm` keeps the
    backbone's batch-norm statistics.
    """

    identities: int = 42
    sizes: tuple[int, ...] = (2,)
    loss: str = "logistic"
    freeze: bool = False
    freeze_norm: bool = False


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that decides a training run, its data aside."""

    preset: str
    seed: int
    backbone: BackboneSettings
    aggregator: AggregatorSettings
    augment: AugmentSettings
    pretrain: PretrainSettings
    sets: SetSettings

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, as stored beside a model."""
        return asdict(self)

    def part(self, *sections: str) -> dict[str, Any]:
        """Return the plain values of some sections and the seed: what one phase of a run depends on."""
        return {"seed": self.seed} | {name: asdict(getattr(self, name)) for name in sections}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainingSettings:
        """Return the settings of nested plain values; unknown names are errors."""
        _require_mapping("training settings", values)
        unknown = set(values) - {f.name for f in fields(cls)}
        if unknown:
            raise choice_error("settings section", min(unknown), [*_SECTIONS, "seed"])
        seed = values.get("seed", 0)
        if type(seed) is not int or seed < 0:
            raise InvalidInputError(f"setting seed must be a whole number from 0, got {seed!r}")
        parts = {name: _parse_section(kind, values.get(name, {}), name) for name, kind in _SECTIONS.items()}
        return cls(preset=str(values.get("preset", "")), seed=seed, **parts)

    def override(self, changes: Sequence[str]) -> TrainingSettings:
        """Return the settings with changes such as ``sets.steps=100`` applied."""
        values = self.as_dict()
        for change in changes:
            name, found, text = change.partition("=")
            if not found:
                raise InvalidInputError(
                    f"override {change!r}: write it as section.name=value, such as sets.steps=100"
                )
            try:
                value = tomllib.loads(f"x = {text}")["x"]
            except tomllib.TOMLDecodeError:
                value = text
            section, _, key = name.strip().partition(".")
            if section == "seed":
                values["seed"] = value
            elif section in _SECTIONS:
                values[section][key] = value
            else:
                raise choice_error("settings section", section, [*_SECTIONS, "seed"])
        return self.from_dict(values)


_SECTIONS: dict[str, type] = {
    "backbone": BackboneSettings,
    "aggregator": AggregatorSettings,
    "augment": AugmentSettings,
    "pretrain": PretrainSettings,
    "sets": SetSettings,
}


def _require_mapping(name: str, values: Any) -> None:
    if not isinstance(values, Mapping):
        raise InvalidInputError(f"{name} must be names with values, got {values!r:.80}")


def _parse_section(kind: type, values: Mapping[str, Any], section: str) -> Any:
    _require_mapping(f"settings section [{section}]", values)
    defaults = asdict(kind())
    made = {}
    for key, value in values.items():
        if key not in defaults:
            raise choice_error(f"setting in [{section}]", key, defaults)
        wanted = type(defaults[key])
        if wanted is tuple and isinstance(value, list | tuple):
            value = tuple(value)
        elif wanted is float and type(value) is int:
            value = float(value)
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise InvalidInputError(f"setting {section}.{key} must be a {wanted.__name__}, got {value!r}")
        _check(f"{section}.{key}", value)
        made[key] = value
    return kind(**made)


# Zero has a meaning for these: no steps, no decay, no clipping, alpha from the data.
_MAY_BE_ZERO = {"steps", "momentum", "weight_decay", "clip", "alpha", "rotation", "validate"}


PRECISIONS = ("float32", "bfloat16")


def _check(name: str, value: Any) -> None:
    """Refuse numbers with which training could only fail, or never end."""
    key = name.partition(".")[2]
    if key == "sizes" and not (value and all(type(size) is int and size >= 1 for size in value)):
        raise InvalidInputError(f"setting {name} must be a list of set sizes from 1, got {list(value)!r}")
    if key == "drops" and not all(isinstance(share, int | float) and 0 <= share <= 1 for share in value):
        raise InvalidInputError(f"setting {name} must be a list of shares from 0 to 1, got {list(value)!r}")
    if key == "precision" and value not in PRECISIONS:
        raise choice_error(f"setting {name}", value, PRECISIONS)
    if isinstance(value, int | float) and not isinstance(value, bool):
        least = "0 or more" if key in _MAY_BE_ZERO else "more than 0"
        if not math.isfinite(value) or value < 0 or (value == 0 and key not in _MAY_BE_ZERO):
            raise InvalidInputError(f"setting {name} must be {least}, got {value!r}")


def presets() -> list[str]:
    """Return the names of the presets.

    >>> presets()
    ['default', 'paper', 'tiny']
    """
    return sorted(path.stem for path in PRESETS.glob("*.toml"))


def load_settings(preset: str = "default", overrides: Sequence[str] = ()) -> TrainingSettings:
    """Return the settings of a preset, or of a TOML file like theirs, with overrides applied.

    >>> load_settings("paper", ["sets.sizes=[3]"]).sets.sizes
    (3,)
    """
    file = Path(preset) if preset.endswith(".toml") else PRESETS / f"{preset}.toml"
    if file.parent == PRESETS and preset not in presets():
        raise choice_error("preset", preset, [*presets(), "a path ending in .toml"])
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{file}: cannot read the settings in it ({error})") from error
    return TrainingSettings.from_dict({"preset": file.stem} | values).override(overrides)
