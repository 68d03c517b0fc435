"""Linear layers that train in eight and four bits, emulated: operands are rounded, products stay float32.

A linear layer makes three products in a step: the outputs, the gradients of its inputs, and those of its
weights. Each operand is rounded to a short format with scales of blocks that lie along the axis over which
the product sums, as tensor cores need them. Everything else (embedding, norms, attention, the last layer)
stays in float32, as do the parameters, which are the **master copy**.

The recipes follow P. Micikevicius et al., "FP8 Formats for Deep Learning" (2022), for one scale per tensor;
DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024), section 3.3, for tiles; A. Mishra et al., "Recipes for
Pre-training LLMs with MXFP8" (2025); and NVIDIA, "Pretraining Large Language Models with NVFP4" (2025).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gpulab.subjects import numerics

LARGEST = {"E4M3": 448.0, "E5M2": 57344.0, "E2M1": 6.0}
_DTYPES = {"E4M3": torch.float8_e4m3fn, "E5M2": torch.float8_e5m2}
WHOLE = 1 << 30  # a block that covers any tensor


@dataclass(frozen=True)
class Scheme:
    """How one operand is rounded.

    `format` is that of an element. A block is `rows` × `columns`, columns along the axis of the sum.
    `powers` makes its scale a power of two, rounded up; `levels` = 2 keeps it in E4M3, under a scale of the
    whole tensor. `chance` rounds stochastically. `history` > 0 takes a scale per tensor from the largest
    magnitudes of so many steps before.
    """

    format: str = "E4M3"
    rows: int = WHOLE
    columns: int = WHOLE
    powers: bool = False
    levels: int = 1
    chance: bool = False
    history: int = 0


@dataclass(frozen=True)
class Recipe:
    """Schemes of activations, weights and gradients; None leaves an operand as it is.

    `rotate` mixes 16 tokens each by a random Hadamard matrix in both operands of the weights' gradients.
    """

    inputs: Scheme | None = None
    weights: Scheme | None = None
    gradients: Scheme | None = None
    rotate: bool = False


_TENSOR = Scheme()
_LATE = Scheme(history=16)
_FLAT = Scheme(rows=1, columns=128)
_MX = Scheme(rows=1, columns=32, powers=True)
_FOUR = Scheme("E2M1", rows=1, columns=16, levels=2)
_PLAIN4 = Recipe(_FOUR, _FOUR, _FOUR)
RECIPES: dict[str, Recipe] = {
    "FP32": Recipe(),
    "FP8, current": Recipe(_TENSOR, _TENSOR, Scheme("E5M2")),
    "FP8, delayed": Recipe(_LATE, _LATE, replace(_LATE, format="E5M2")),
    "FP8, tiles": Recipe(_FLAT, Scheme(rows=128, columns=128), _FLAT),
    "MXFP8": Recipe(_MX, _MX, _MX),
    "NVFP4, plain": _PLAIN4,
    "NVFP4": Recipe(_FOUR, replace(_FOUR, rows=16), replace(_FOUR, chance=True), rotate=True),
}


def blocks(x: Tensor, rows: int, columns: int) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """x (m, n) as (down, rows, across, columns), padded with zeros, and what brings such a tensor back."""
    m, n = x.shape
    rows, columns = min(rows, m), min(columns, n)
    padded = nn.functional.pad(x, (0, -n % columns, 0, -m % rows))
    cut = padded.view(padded.shape[0] // rows, rows, padded.shape[1] // columns, columns)
    return cut, lambda y: y.reshape(padded.shape)[:m, :n]


def to_format(x: Tensor, format: str, generator: torch.Generator | None = None) -> Tensor:
    """x, scaled already, to the nearest numbers of E4M3, E5M2 or E2M1; what is too large is cut off.

    With a `generator` E2M1 is rounded by chance. Raises KeyError for another format.
    """
    x = x.clamp(-LARGEST[format], LARGEST[format])
    if format != "E2M1":
        return x.to(_DTYPES[format]).to(x.dtype)
    size = x.abs()
    step = 0.5 + 0.5 * (size >= 2) + (size >= 4)  # between neighbours in E2M1
    places = x / step
    if generator is None:
        return places.round() * step
    return (places + torch.rand(x.shape, generator=generator)).floor() * step


def rounded(x: Tensor, scheme: Scheme | None, state: State | None = None, key: str = "") -> Tensor:
    """The matrix x as it comes back from a scheme; `state` has the histories and the source of chance."""
    if scheme is None:
        return x
    cut, whole = blocks(x, scheme.rows, scheme.columns)
    top = cut.abs().amax((1, 3), keepdim=True)
    if scheme.history and state is not None:
        top = torch.full_like(top, state.known(key, float(top.max()), scheme.history))
    scale = top / LARGEST[scheme.format]
    if scheme.levels == 2:
        tensor = scale.max().clamp(min=1e-30) / LARGEST["E4M3"]
        scale = to_format(scale / tensor, "E4M3") * tensor
    scale = torch.where(scale > 0, scale, 1.0)
    if scheme.powers:
        scale = torch.exp2(scale.log2().ceil())
    generator = state.chance if scheme.chance and state is not None else None
    return whole(to_format(cut / scale, scheme.format, generator) * scale)


@cache
def _turn() -> Tensor:
    """The orthogonal Hadamard matrix (16, 16), float32."""
    return torch.from_numpy(numerics.hadamard(np.eye(16)).astype(np.float32))


@dataclass
class State:
    """What a layer keeps from step to step."""

    chance: torch.Generator
    histories: dict[str, list[float]] = field(default_factory=dict)

    def known(self, key: str, now: float, length: int) -> float:
        """The largest magnitude of the last `length` steps; `now` at the first. `now` joins the history."""
        history = self.histories.setdefault(key, [])
        largest = max(history[-length:], default=0.0) or now
        history.append(now)
        return largest


class _Product(torch.autograd.Function):
    """x (tokens, in), weight (out, in) → x weightᵀ, with all six operands of a step rounded."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, recipe: Recipe, state: State) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.recipe, ctx.state = recipe, state
        return rounded(x, recipe.inputs, state, "x") @ rounded(weight, recipe.weights, state, "w").t()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (dy,) = gradients
        x, weight = ctx.saved_tensors
        recipe, state = ctx.recipe, ctx.state
        flipped = rounded(weight.t(), recipe.weights, state, "w back")
        dx = rounded(dy, recipe.gradients, state, "dy") @ flipped.t()
        if recipe.rotate and len(x) % 16 == 0:
            signs = torch.randint(0, 2, (16,), generator=state.chance) * 2.0 - 1.0
            turn = _turn() * signs
            x, dy = ((turn @ each.reshape(-1, 16, each.shape[1])).reshape(each.shape) for each in (x, dy))
        dw = (
            rounded(dy.t(), recipe.gradients, state, "dy back")
            @ rounded(x.t(), recipe.inputs, state, "x back").t()
        )
        return dx, dw, None, None


class ShortLinear(nn.Module):
    """A linear layer that computes by a recipe; takes over the parameters of `layer`."""

    def __init__(self, layer: nn.Linear, recipe: Recipe, seed: int) -> None:
        super().__init__()
        self.weight, self.bias, self.recipe = layer.weight, layer.bias, recipe
        self.state = State(torch.Generator().manual_seed(seed))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = _Product.apply(x.reshape(-1, x.shape[-1]), self.weight, self.recipe, self.state)
        y = y.view(*x.shape[:-1], -1)
        return y if self.bias is None else y + self.bias


def shorten(
    model: nn.Module, recipe: str | Recipe, keep: Iterable[str] = ("head",), seed: int = 0
) -> nn.Module:
    """Make the linear layers of `model` compute by a recipe; changes it in place and returns it.

    `recipe` is one of `RECIPES` or a `Recipe`. Layers whose name ends with a name in `keep` stay as they
    are. Raises KeyError for a recipe that does not exist.
    """
    chosen = RECIPES[recipe] if isinstance(recipe, str) else recipe
    kept = tuple(keep)
    for number, (name, layer) in enumerate(list(model.named_modules())):
        if isinstance(layer, nn.Linear) and not name.endswith(kept):
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, ShortLinear(layer, chosen, seed + number))
    return model
