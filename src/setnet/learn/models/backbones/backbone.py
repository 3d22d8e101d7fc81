"""The interface of backbones: faces become features, features become descriptors."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from setnet.errors import one_of


@dataclass(frozen=True)
class InputSpec:
    """How a face must be presented: RGB, `size` pixels square, ``(x - mean) / std`` of 0-255."""

    size: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    @property
    def align(self) -> str:
        """How faces are cut: the paper's networks see the box around a face, small ones five points."""
        return "box" if self.size == 224 else "five-point"


class Backbone(nn.Module):
    """Base of the feature extractors (section 3.1): `features`, then `reduce`, the last, linear layer.

    Attributes
    ----------
    feature_dim, dim
        Width before and after the last layer (2048 and D_e for the paper's networks).
    spec
        The images expected; None when elements are descriptors already.
    """

    reduce: nn.Linear
    spec: InputSpec | None = None

    def __init__(self, feature_dim: int, dim: int) -> None:
        super().__init__()
        self.feature_dim = feature_dim
        self.dim = dim

    def features(self, images: Tensor) -> Tensor:
        """Return the features before the last layer, (n, feature_dim)."""
        raise NotImplementedError

    def forward(self, images: Tensor) -> Tensor:
        """Return the descriptors, (n, dim), not normalised."""
        out: Tensor = self.reduce(self.features(images))
        return out


class Descriptors(Backbone):
    """Descriptors already computed: a backbone with nothing to train."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim, dim)

    def features(self, images: Tensor) -> Tensor:
        """Return the descriptors unchanged."""
        return images

    def forward(self, images: Tensor) -> Tensor:
        """Return the descriptors unchanged."""
        return images


BACKBONES = ("descriptors", "mobile", "resnet50", "senet50", "sface", "small")


def make_backbone(
    name: str, dim: int, size: int = 112, width: float = 1.0, recompute: bool = False
) -> Backbone:
    """Return a fresh backbone by name; `size` and `width` are for the small ones, `recompute` for ResNets.

    >>> make_backbone("descriptors", 128).dim
    128
    """
    if name == "descriptors":
        return Descriptors(dim)
    if name == "mobile":
        from setnet.learn.models.backbones.mobilefacenet import MobileFaceNet

        return MobileFaceNet(dim, size=size, width=width)
    if name == "small":
        from setnet.learn.models.backbones.small_cnn import SmallCNN

        return SmallCNN(dim, size=size, width=width)
    if name == "sface":
        from setnet.learn.models.backbones.sface import SFace

        return SFace(dim, size)
    if name in ("resnet50", "senet50"):
        from setnet.learn.models.backbones.resnet import ResNet50

        return ResNet50(dim, squeeze=name == "senet50", recompute=recompute)
    raise one_of("backbone", name, BACKBONES)
