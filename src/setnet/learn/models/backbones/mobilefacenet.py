"""A small backbone of MobileFaceNet's size (Chen et al., 2018), which a CPU can train."""

from __future__ import annotations

from torch import Tensor, nn

from setnet.learn.models.backbones.backbone import Backbone, InputSpec

# expansion, width, repeats, stride of the inverted-residual stages (table 1 of the MobileFaceNet paper)
STAGES = ((2, 64, 5, 2), (4, 128, 1, 2), (2, 128, 6, 1), (4, 128, 1, 2), (2, 128, 2, 1))


def _conv(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, act: bool = True
) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    if act:
        layers.append(nn.PReLU(outputs))
    return nn.Sequential(*layers)


class _Bottleneck(nn.Module):
    def __init__(self, inputs: int, outputs: int, expansion: int, stride: int) -> None:
        super().__init__()
        middle = inputs * expansion
        self.skip = stride == 1 and inputs == outputs
        self.body = nn.Sequential(
            _conv(inputs, middle, 1),
            _conv(middle, middle, 3, stride, groups=middle),
            _conv(middle, outputs, 1, act=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.body(x)
        return x + out if self.skip else out


class MobileFaceNet(Backbone):
    """Inverted residuals and a global depthwise convolution; about a million weights at width 1.

    `size` is the side of the square face crop (112 in the original); `width` scales all channel counts.
    """

    def __init__(self, dim: int, size: int = 112, width: float = 1.0) -> None:
        def wide(channels: int) -> int:
            return max(8, round(channels * width / 8) * 8)

        super().__init__(wide(512), dim)
        self.spec = InputSpec(size, (127.5, 127.5, 127.5), (128.0, 128.0, 128.0))
        first = wide(64)
        layers: list[nn.Module] = [_conv(3, first, 3, 2), _conv(first, first, 3, groups=first)]
        inputs, side = first, -(-size // 2)
        for expansion, channels, repeats, stride in STAGES:
            for i in range(repeats):
                layers.append(_Bottleneck(inputs, wide(channels), expansion, stride if i == 0 else 1))
                inputs = wide(channels)
            side = -(-side // stride)
        self.trunk = nn.Sequential(*layers, _conv(inputs, self.feature_dim, 1))
        self.pool = nn.Sequential(
            nn.Conv2d(self.feature_dim, self.feature_dim, side, groups=self.feature_dim, bias=False),
            nn.BatchNorm2d(self.feature_dim),
        )
        self.reduce = nn.Linear(self.feature_dim, dim)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def features(self, images: Tensor) -> Tensor:
        """Return the output of the global depthwise convolution, flattened."""
        out: Tensor = self.pool(self.trunk(images)).flatten(1)
        return out
