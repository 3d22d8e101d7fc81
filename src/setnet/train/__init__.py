"""Training of face descriptors and set heads (torch, the `train` extra).

Stages of a run, each also a `setnet train` command: `run_pretrain`, `run_sets`, `run_whiten`, `run_export`.
Below them: `pretrain` and `train_sets` train a network in place, `train_loop` is the one loop under both.
Networks: `SetNetwork`, a backbone and an aggregator
(`new_backbone`, `new_network`), stored by `save_network` and read by `load_network`; `NetworkAggregator` runs
one like a head. Data: `DescriptorSource`, `FaceFolder`, `FaceArray`, `VirtualSource`. Settings:
`load_settings`. Heads in closed form: `RECIPES` and `fit_head`. Scores: `calibrate_elements`, `fit_logistic`,
and of a whole descriptor model `fit_model_calibration`.
"""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, extra="train")
