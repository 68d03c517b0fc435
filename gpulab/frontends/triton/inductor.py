"""Runs the Triton kernels that Inductor writes for ``torch.compile``, on tensors of the CPU.

Inductor writes Triton for the CPU if it is told to, but leaves compiling and launching to a back end that
Triton does not have. Here each of its kernels becomes a kernel of ours: the simulated device launches it, and
it is checked and counted like any other.
"""

from __future__ import annotations

from typing import Any

from .driver import install as install_driver
from .jit import Kernel


def install() -> None:
    """From now on Inductor writes Triton, and its kernels run on the simulated device."""
    from torch._inductor import config
    from torch._inductor.runtime import triton_helpers
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    install_driver()
    config.cpu_backend = "triton"
    config.compile_threads = 1  # its worker processes would compile for a GPU of theirs
    triton_helpers.set_driver_to_cpu = install_driver
    CachingAutotuner.precompile = _compile_later
    CachingAutotuner.run = _run


def _compile_later(self: Any, *_: Any, **__: Any) -> None:
    """Takes the place of ``CachingAutotuner.precompile``: a kernel is compiled at its launch."""


def _run(self: Any, *given: Any, stream: Any = None, **more: Any) -> None:
    """Takes the place of ``CachingAutotuner.run``, which Inductor's code calls for a launch.

    Inductor proposes several configurations and measures them. Without a clock it is its first proposal.
    """
    from torch._inductor.runtime.triton_heuristics import GridExpr

    first, kernel = self.configs[0], _kernel(self)
    constants = {**self.triton_meta["constants"], **first.kwargs}
    left_out = {parameter.name for parameter in kernel.params if parameter.is_constexpr} & constants.keys()
    names = [name for name in kernel.arg_names if name not in left_out]
    of_grid = self.inductor_meta.get("extra_launcher_args", ())
    known = dict(zip([*names, *of_grid], given, strict=True)) | more
    grid = GridExpr.from_meta(self.inductor_meta, first).eval_slow(known)
    arguments = {name: known[name] for name in names if name not in constants}
    kernel.run(**constants, **arguments, **_options(first), grid=grid)


def _kernel(autotuner: Any) -> Kernel:
    """The kernel of ours for one of Inductor's, made at its first launch."""
    if not isinstance(autotuner.fn, Kernel):
        autotuner.fn = Kernel(autotuner.fn.fn)
    return autotuner.fn


def _options(config: Any) -> dict[str, Any]:
    return {"num_warps": config.num_warps, "num_stages": config.num_stages}
