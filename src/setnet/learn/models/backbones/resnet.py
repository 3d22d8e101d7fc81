"""ResNet-50 and SENet-50 with VGGFace2's layer names, so that its checkpoints load as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from setnet.learn.models.backbones.backbone import Backbone, InputSpec

BLOCKS = (3, 4, 6, 3)
SE_RATIO = 16


class ResNet50(Backbone):
    """The paper's feature extractor, cut after global average pooling, with a 2048 x D_e layer.

    The stride of a stage sits on its first 1x1 convolutions (reduce and projection), as in the original Caffe
    network. `squeeze` adds squeeze-and-excitation (SENet-50). `recompute` keeps only the blocks' inputs in
    training and computes the rest again in the backward pass: a fifth of the memory, a third more time.
    """

    spec = InputSpec(224, (131.0912, 103.8827, 91.4953), (1.0, 1.0, 1.0))

    def __init__(self, dim: int, squeeze: bool = False, bias: bool = True, recompute: bool = False) -> None:
        super().__init__(2048, dim)
        self.squeeze, self.recompute = squeeze, recompute
        self._conv("conv1_7x7_s2", 3, 64, 7, stride=2)
        width_in = 64
        for stage, blocks in enumerate(BLOCKS, start=2):
            width = 64 * 2 ** (stage - 2)
            for block in range(1, blocks + 1):
                name = f"conv{stage}_{block}"
                stride = 2 if block == 1 and stage > 2 else 1
                self._conv(f"{name}_1x1_reduce", width_in, width, 1, stride)
                self._conv(f"{name}_3x3", width, width, 3)
                self._conv(f"{name}_1x1_increase", width, 4 * width, 1)
                if block == 1:
                    self._conv(f"{name}_1x1_proj", width_in, 4 * width, 1, stride)
                if squeeze:
                    self.add_module(f"{name}_1x1_down", nn.Conv2d(4 * width, 4 * width // SE_RATIO, 1))
                    self.add_module(f"{name}_1x1_up", nn.Conv2d(4 * width // SE_RATIO, 4 * width, 1))
                width_in = 4 * width
        self.reduce = nn.Linear(2048, dim, bias=bias)

    def _conv(self, name: str, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
        self.add_module(name, conv)
        self.add_module(f"{name}_bn", nn.BatchNorm2d(outputs))

    def _apply_conv(self, name: str, x: Tensor) -> Tensor:
        out: Tensor = getattr(self, f"{name}_bn")(getattr(self, name)(x))
        return out

    def _block(self, name: str, x: Tensor, project: bool) -> Tensor:
        out = functional.relu(self._apply_conv(f"{name}_1x1_reduce", x), inplace=True)
        out = functional.relu(self._apply_conv(f"{name}_3x3", out), inplace=True)
        out = self._apply_conv(f"{name}_1x1_increase", out)
        if self.squeeze:
            gate = functional.relu(getattr(self, f"{name}_1x1_down")(functional.adaptive_avg_pool2d(out, 1)))
            out = out * getattr(self, f"{name}_1x1_up")(gate).sigmoid()
        shortcut = self._apply_conv(f"{name}_1x1_proj", x) if project else x
        return functional.relu(out + shortcut, inplace=True)

    def features(self, images: Tensor) -> Tensor:
        """Return the 2048-D global average pooling."""
        x = functional.relu(self._apply_conv("conv1_7x7_s2", images), inplace=True)
        x = functional.max_pool2d(x, 3, 2, ceil_mode=True)
        for stage, blocks in enumerate(BLOCKS, start=2):
            for block in range(1, blocks + 1):
                name, project = f"conv{stage}_{block}", block == 1
                if self.recompute and self.training:
                    x = checkpoint(
                        self._block,
                        name,
                        x,
                        project,
                        use_reentrant=False,
                        context_fn=lambda: (nullcontext(), _once(self)),
                    )
                else:
                    x = self._block(name, x, project)
        return x.mean((2, 3))


@contextmanager
def _once(net: nn.Module) -> Iterator[None]:
    """Keep batch norm's running statistics still: a block computed again must not count twice."""
    norms = [part for part in net.modules() if isinstance(part, nn.BatchNorm2d)]
    kept = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, kept, strict=True):
            norm.momentum = momentum
