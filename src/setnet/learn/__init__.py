"""Trains faces and sets (torch, the `train` extra): backbones, NetVLAD, losses, sampling, export."""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, extra="train")
