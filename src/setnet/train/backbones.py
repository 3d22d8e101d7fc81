"""Backbones: faces become features, features become descriptors; the interface and the small ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from setnet.errors import choice_error
from setnet.train.settings import BackboneSettings


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


def make_backbone(wanted: BackboneSettings) -> Backbone:
    """Return a fresh backbone, as settings describe it.

    >>> make_backbone(BackboneSettings("descriptors", 128)).dim
    128
    """
    if wanted.name not in BACKBONES:
        raise choice_error("backbone", wanted.name, BACKBONES)
    return BACKBONES[wanted.name](wanted)


WIDTHS = (16, 32, 64, 128)
LAST_SIDE = 4  # pixels left of the side: 4 x 4 x 128 are the 2048 features of the paper's networks


class SmallCNN(Backbone):
    """Four convolutions, each after the first halving the side; 2048 features at `width` 1.

    `size` is a multiple of 8; larger pictures are averaged to the last side.
    """

    def __init__(self, dim: int, size: int = 32, width: float = 1.0) -> None:
        widths = [max(8, round(channels * width / 8) * 8) for channels in WIDTHS]
        super().__init__(widths[-1] * LAST_SIDE**2, dim)
        self.spec = InputSpec(size, (127.5, 127.5, 127.5), (64.0, 64.0, 64.0))
        layers: list[nn.Module] = []
        for inputs, outputs in zip([3, *widths], widths, strict=False):
            layers += [
                nn.Conv2d(inputs, outputs, 3, 2 if layers else 1, 1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(inplace=True),
            ]
        self.trunk = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(LAST_SIDE))
        self.reduce = nn.Linear(self.feature_dim, dim)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def features(self, images: Tensor) -> Tensor:
        """Return the last convolution's output, flattened."""
        out: Tensor = self.trunk(images).flatten(1)
        return out


def _resnet(wanted: BackboneSettings) -> Backbone:
    from setnet.train.resnet import ResNet50

    return ResNet50(wanted.dim, squeeze=wanted.name == "senet50", recompute=wanted.recompute)


# A program may add its own kinds, under other names.
BACKBONES: dict[str, Callable[[BackboneSettings], Backbone]] = {
    "descriptors": lambda wanted: Descriptors(wanted.dim),
    "resnet50": _resnet,
    "senet50": _resnet,
    "small": lambda wanted: SmallCNN(wanted.dim, wanted.size, wanted.width),
}
