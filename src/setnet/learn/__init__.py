"""Trains faces and sets (torch, the `train` extra): backbones, NetVLAD, losses, sampling, export."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from setnet.errors import ModelError

if TYPE_CHECKING:
    from setnet.learn.export.calibration import Calibration, calibrate_elements, fit_logistic
    from setnet.learn.models.network import SetNetwork, make_aggregator
    from setnet.learn.training.settings import Settings, load_settings, presets

# Names are imported on first use: calibration and settings do without torch.
_HOME = {
    "Calibration": "export.calibration",
    "SetNetwork": "models.network",
    "Settings": "training.settings",
    "calibrate_elements": "export.calibration",
    "fit_logistic": "export.calibration",
    "load_settings": "training.settings",
    "make_aggregator": "models.network",
    "presets": "training.settings",
}

__all__ = [
    "Calibration",
    "SetNetwork",
    "Settings",
    "calibrate_elements",
    "fit_logistic",
    "load_settings",
    "make_aggregator",
    "presets",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'setnet.learn' has no attribute {name!r}")
    try:
        return getattr(import_module(f"setnet.learn.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModelError("training needs torch: install it with `pip install 'setnet[train]'`") from error


def __dir__() -> list[str]:
    return __all__
