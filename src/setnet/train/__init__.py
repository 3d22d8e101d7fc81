"""Training of face descriptors and set heads (torch, the `train` extra).

Stages of a run, each also a `setnet train` command: `run_pretrain`, `run_sets`, `run_whiten`, `run_export`.
Below them: `pretrain` and `train_sets` train a network in place, `train_loop` is the one loop under both.
Networks: `SetNetwork`, a backbone and an aggregator
(`new_backbone`, `new_network`), stored by `save_network` and read by `load_network`; `NetworkAggregator` runs
one like a head. Data: `DescriptorSource`, `FaceFolder`, `FaceArray`, `VirtualSource`. Settings:
`load_settings`. Heads in closed form: `RECIPES` and `fit_head`. Scores: `calibrate_elements`, `fit_logistic`,
and of a whole descriptor model `fit_model_calibration`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from setnet.errors import ModelError

if TYPE_CHECKING:
    from setnet.train.aggregators import GeneralisedMean
    from setnet.train.backbones import Descriptors
    from setnet.train.calibration import (
        Calibration,
        MatchRates,
        calibrate_elements,
        fit_logistic,
        fit_model_calibration,
        match_rates,
    )
    from setnet.train.distributed import use_device
    from setnet.train.export import ExportedNetwork, export_network
    from setnet.train.faces import (
        Crops,
        FaceArray,
        FaceFolder,
        FacePhotos,
        FaceSource,
        FeatureSource,
        aligned_crops,
        identity_photos,
        kept_features,
    )
    from setnet.train.glyphs import Glyphs, GlyphSource, font_packages, rendered_glyphs
    from setnet.train.loop import TrainReport, train_loop
    from setnet.train.network import (
        NetworkAggregator,
        SetNetwork,
        StoredNetwork,
        learned_exponents,
        load_backbone,
        load_network,
        make_aggregator,
        new_backbone,
        new_network,
        save_backbone,
        save_network,
    )
    from setnet.train.recipes import RECIPES, Recipe, fit_head
    from setnet.train.settings import Schedule, SetSettings, TrainingSettings, load_settings, presets
    from setnet.train.sface import SFace, SFaceEnd, load_sface
    from setnet.train.simulated import SimulatedIdentities, VirtualPeople
    from setnet.train.sources import DescriptorSource, Draw, TrainingSource, VirtualSource
    from setnet.train.stages import (
        VARIANTS,
        WITHOUT,
        Variant,
        WhitenReport,
        run_export,
        run_pretrain,
        run_sets,
        run_whiten,
        trained_variant,
        whiten,
    )
    from setnet.train.training import adapt, elements_of, pretrain, set_step_loss, train_sets

__all__ = [
    "RECIPES",
    "VARIANTS",
    "WITHOUT",
    "Calibration",
    "Crops",
    "DescriptorSource",
    "Descriptors",
    "Draw",
    "ExportedNetwork",
    "FaceArray",
    "FaceFolder",
    "FacePhotos",
    "FaceSource",
    "FeatureSource",
    "GeneralisedMean",
    "GlyphSource",
    "Glyphs",
    "MatchRates",
    "NetworkAggregator",
    "Recipe",
    "SFace",
    "SFaceEnd",
    "Schedule",
    "SetNetwork",
    "SetSettings",
    "SimulatedIdentities",
    "StoredNetwork",
    "TrainReport",
    "TrainingSettings",
    "TrainingSource",
    "Variant",
    "VirtualPeople",
    "VirtualSource",
    "WhitenReport",
    "adapt",
    "aligned_crops",
    "calibrate_elements",
    "elements_of",
    "export_network",
    "fit_head",
    "fit_logistic",
    "fit_model_calibration",
    "font_packages",
    "identity_photos",
    "kept_features",
    "learned_exponents",
    "load_backbone",
    "load_network",
    "load_settings",
    "load_sface",
    "make_aggregator",
    "match_rates",
    "new_backbone",
    "new_network",
    "presets",
    "pretrain",
    "rendered_glyphs",
    "run_export",
    "run_pretrain",
    "run_sets",
    "run_whiten",
    "save_backbone",
    "save_network",
    "set_step_loss",
    "train_loop",
    "train_sets",
    "trained_variant",
    "use_device",
    "whiten",
]

# Imported on first use (PEP 562): torch takes seconds to load, and some names are used without it.
_MODULES = {
    "aggregators": ("GeneralisedMean",),
    "backbones": ("Descriptors",),
    "calibration": (
        "Calibration",
        "MatchRates",
        "calibrate_elements",
        "fit_logistic",
        "fit_model_calibration",
        "match_rates",
    ),
    "distributed": ("use_device",),
    "export": (
        "ExportedNetwork",
        "export_network",
    ),
    "faces": (
        "Crops",
        "FaceArray",
        "FaceFolder",
        "FacePhotos",
        "FaceSource",
        "FeatureSource",
        "aligned_crops",
        "identity_photos",
        "kept_features",
    ),
    "glyphs": (
        "GlyphSource",
        "Glyphs",
        "font_packages",
        "rendered_glyphs",
    ),
    "loop": (
        "TrainReport",
        "train_loop",
    ),
    "network": (
        "NetworkAggregator",
        "SetNetwork",
        "StoredNetwork",
        "learned_exponents",
        "load_backbone",
        "load_network",
        "make_aggregator",
        "new_backbone",
        "new_network",
        "save_backbone",
        "save_network",
    ),
    "recipes": (
        "RECIPES",
        "Recipe",
        "fit_head",
    ),
    "settings": (
        "Schedule",
        "SetSettings",
        "TrainingSettings",
        "load_settings",
        "presets",
    ),
    "sface": (
        "SFace",
        "SFaceEnd",
        "load_sface",
    ),
    "simulated": (
        "SimulatedIdentities",
        "VirtualPeople",
    ),
    "sources": (
        "DescriptorSource",
        "Draw",
        "TrainingSource",
        "VirtualSource",
    ),
    "stages": (
        "VARIANTS",
        "WITHOUT",
        "Variant",
        "WhitenReport",
        "run_export",
        "run_pretrain",
        "run_sets",
        "run_whiten",
        "trained_variant",
        "whiten",
    ),
    "training": (
        "adapt",
        "elements_of",
        "pretrain",
        "set_step_loss",
        "train_sets",
    ),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("setnet"):
            raise
        raise ModelError(
            f"setnet.train needs {error.name}: install it with `pip install 'setnet[train]'`"
        ) from error
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
