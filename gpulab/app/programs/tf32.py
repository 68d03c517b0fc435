"""Products of float32 matrices in TF32, as a GPU's tensor cores make them, where a program allows them.

Without it, a program would compare its kernels with products that are more exact than those of a GPU. Factors
are rounded to the nearest. NVIDIA does not say how cuBLAS rounds; but the kernel of its cuTile example
MatMul.py rounds so, and has to agree with cuBLAS, from Hopper on, more closely than with factors cut off.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gpulab.simulator import device as devices
from gpulab.subjects import numerics

_aten = torch.ops.aten
# Where the two factors are among the arguments of PyTorch's products; all its others come down to these.
_FIRST_FACTOR = {_aten.mm: 0, _aten.bmm: 0, _aten.addmm: 1, _aten._addmm_activation: 1, _aten.baddbmm: 1}


class RoundedFactors(TorchDispatchMode):
    """While it is entered, the factors of matrix products in float32 are rounded to TF32."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        first = _FIRST_FACTOR.get(func.overloadpacket)
        if first is not None:
            args = (*args[:first], *map(_rounded, args[first : first + 2]), *args[first + 2 :])
        return func(*args, **(kwargs or {}))


def is_allowed() -> bool:
    """Whether the program has said ``set_float32_matmul_precision("high")`` or what means the same, and the
    simulated GPU has TF32. What torch.compile traces stays as it is."""
    return (
        not torch.compiler.is_compiling()
        and torch.backends.cuda.matmul.fp32_precision == "tf32"
        and "tfloat32" in devices.current().gpu.tensor_fma
    )


def _rounded(factor: torch.Tensor) -> torch.Tensor:
    if type(factor) not in (torch.Tensor, torch.nn.Parameter) or factor.dtype != torch.float32:
        return factor
    return torch.from_numpy(numerics.quantize(factor.detach().numpy(), "TF32"))
