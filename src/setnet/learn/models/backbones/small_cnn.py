"""A plain convolutional network for small pictures, trained on a CPU in minutes."""

from __future__ import annotations

from torch import Tensor, nn

from setnet.learn.models.backbones.backbone import Backbone, InputSpec

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
