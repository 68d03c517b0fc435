"""Training in a short format, emulated: every result is rounded, the arithmetic itself stays float32.

PyTorch's own float16 on a CPU is tens of times slower than float32; rounding costs little. What is
rounded is what a GPU would keep in the format: weights, outputs of layers, and their gradients. Products
are accumulated in float32, as tensor cores do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from gpulab.subjects.numerics import find, quantize

DTYPES = {"FP16": torch.float16, "BF16": torch.bfloat16, "E5M2": torch.float8_e5m2}
Watch = Callable[[str, Tensor], None]


def rounded(x: Tensor, format: str) -> Tensor:
    """x, float32 of any shape, to the nearest numbers of a format; too large becomes infinity or NaN."""
    name = find(format).name
    if name in ("FP32", "FP64"):
        return x
    if name in DTYPES:
        return x.to(DTYPES[name]).to(x.dtype)
    return torch.from_numpy(quantize(x.detach().cpu().numpy(), name)).to(x)


class _Round(torch.autograd.Function):
    """Rounds on the way forward to one format, on the way back to another."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, forward: str, backward: str, name: str, watch: Watch | None) -> Tensor:
        ctx.backward_format, ctx.name, ctx.watch = backward, name, watch
        return rounded(x, forward)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        if ctx.watch is not None:
            ctx.watch(ctx.name, gradient)
        return rounded(gradient, ctx.backward_format), None, None, None, None


class _Rounded(nn.Module):
    """A parametrization: the layer sees the weight rounded; the parameter stays the float32 **master
    copy**."""

    def __init__(self, forward_format: str, backward_format: str) -> None:
        super().__init__()
        self.formats = forward_format, backward_format

    def forward(self, weight: Tensor) -> Tensor:
        out: Tensor = _Round.apply(weight, *self.formats, "weight", None)
        return out


def emulate(
    model: nn.Module,
    format: str = "FP16",
    *,
    gradients: str | None = None,
    watch: Watch | None = None,
) -> nn.Module:
    """Make `model` compute as if in `format`; changes it in place and returns it.

    Weights of linear layers and outputs of all layers without children are rounded to `format`, the
    gradients of both to `gradients` (by default the same). The parameters stay float32: they are the
    master weights. `watch` (layer's name, gradient of its output) is called with each gradient before it
    is rounded. Raises UnknownFormat.
    """
    forward, backward = find(format).name, find(gradients or format).name

    def after(name: str) -> Callable[..., Tensor]:
        def hook(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
            out: Tensor = _Round.apply(output, forward, backward, name, watch)
            return out

        return hook

    for name, module in list(model.named_modules()):
        if next(module.children(), None) is None:
            module.register_forward_hook(after(name))
        if isinstance(module, nn.Linear):
            parametrize.register_parametrization(module, "weight", _Rounded(forward, backward), unsafe=True)
    return model
