"""Trains faces and sets (torch, the `train` extra): backbones, NetVLAD, losses, sampling, export."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from setnet.errors import ModelError

if TYPE_CHECKING:
    from setnet.learn.calibration import Calibration, calibrate_elements, fit_logistic
    from setnet.learn.network import SetNetwork, make_aggregator
    from setnet.learn.settings import Settings, load_settings, presets

# Names are imported on first use: calibration and settings do without torch.
_HOME = {
    "Calibration": "calibration",
    "SetNetwork": "network",
    "Settings": "settings",
    "calibrate_elements": "calibration",
    "fit_logistic": "calibration",
    "load_settings": "settings",
    "make_aggregator": "network",
    "presets": "settings",
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
