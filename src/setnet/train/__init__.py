"""Training of face descriptors and set heads (torch, the `train` extra).

Stages of a run, each also a `setnet train` command: `run_pretrain`, `run_sets`, `run_whiten`, `run_export`.
Below them: `pretrain` and `train_sets` train a network in place. Networks: `SetNetwork`, a backbone and an
aggregator (`new_backbone`, `new_network`), stored by `save_network` and read by `load_network`;
`NetworkAggregator` runs one like a head. Data: `DescriptorSource`, `FaceFolder`, `FaceArray`. Settings:
`load_settings`. Heads in closed form: `RECIPES` and `fit_head`. Scores: `calibrate_elements`, `fit_logistic`,
and of a whole descriptor model `fit_model_calibration`.
"""

from typing import TYPE_CHECKING

from setnet.lazy import lazy_names

__all__ = [
    "RECIPES",
    "DescriptorSource",
    "FaceArray",
    "FaceFolder",
    "NetworkAggregator",
    "SetNetwork",
    "TrainingSettings",
    "VirtualPeople",
    "add_vggface2",
    "calibrate_elements",
    "fit_head",
    "fit_logistic",
    "fit_model_calibration",
    "load_backbone",
    "load_network",
    "load_settings",
    "match_rates",
    "new_backbone",
    "new_network",
    "pretrain",
    "run_export",
    "run_pretrain",
    "run_sets",
    "run_whiten",
    "save_backbone",
    "save_network",
    "train_sets",
]

if TYPE_CHECKING:
    from setnet.train.calibration import calibrate_elements, fit_logistic, fit_model_calibration, match_rates
    from setnet.train.faces import FaceArray, FaceFolder
    from setnet.train.network import (
        NetworkAggregator,
        SetNetwork,
        add_vggface2,
        load_backbone,
        load_network,
        new_backbone,
        new_network,
        save_backbone,
        save_network,
    )
    from setnet.train.recipes import RECIPES, fit_head
    from setnet.train.settings import TrainingSettings, load_settings
    from setnet.train.simulated import VirtualPeople
    from setnet.train.sources import DescriptorSource
    from setnet.train.stages import run_export, run_pretrain, run_sets, run_whiten
    from setnet.train.training import pretrain, train_sets
else:
    __getattr__, __dir__ = lazy_names(__name__)
