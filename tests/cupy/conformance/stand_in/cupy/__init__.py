"""Imported as ``cupy`` in place of it: puts gpulab's there, and what else CuPy's tests use.

CuPy's own testing tools come from its source distribution, whose folder is in CUPY_SOURCE. What touches its
private parts (its file cache, its choice of accelerators) is answered by stand-ins that do nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import math
import os
import sys
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy

from gpulab.analysis import cupyx as simulated_cupyx
from gpulab.frontends import cupy as simulated_cupy

SOURCE = os.environ.get("CUPY_SOURCE", "")

sys.modules["cupy"] = simulated_cupy
sys.modules["cupyx"] = simulated_cupyx


def module(name: str, **contents: Any) -> ModuleType:
    """A module of that name, also as an attribute of the one that it lies in."""
    made = ModuleType(name)
    made.__dict__.update(contents)
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, made)
    return made


def alias(name: str, thing: Any) -> None:
    sys.modules[name] = thing


class PerformanceWarning(RuntimeWarning):
    pass


module(
    "cupy._util",
    clear_memo=simulated_cupy.clear_memo,
    memoize=lambda *args, **kwargs: cache,
    PerformanceWarning=PerformanceWarning,
    ENABLE_SLICE_COPY=True,
    experimental=lambda name: None,
)
alias("cupy.exceptions", numpy.exceptions)
cuda = importlib.import_module("gpulab.frontends.cupy.cuda")
for name in ("cuda", "cuda.runtime", "cuda.memory", "cuda.compiler", "cuda.stream", "cuda.device"):
    thing: Any = simulated_cupy
    for part in name.split("."):
        thing = getattr(thing, part)
    alias(f"cupy.{name}", thing)


class DiskKernelCacheBackend:
    """CuPy's cache of machine code in files, which gpulab has none of."""

    def __init__(self, path: str) -> None:
        self._cache_dir = path

    def save(self, name: str, cubin: bytes, source: str) -> None:
        pass


module("cupy.cuda._compiler_cache", DiskKernelCacheBackend=DiskKernelCacheBackend)
alias("cupy.cuda.texture", cuda.texture)
vars(cuda.compiler).update(
    _kernel_cache_backend=None,
    _empty_file_preprocess_cache={},
    _get_bool_env_variable=lambda name, default: default,
    _compiler_cache=sys.modules["cupy.cuda._compiler_cache"],
    _run_cc=lambda *args: "release 12.0,",  # nvcc's, which a header of CuPy's own needs to be older than 12.2
    _get_arch=lambda: "80",
    JitifyException=cuda.compiler.CompileException,
    _cache_payload_magic=b"",
)
cuda.get_nvcc_path = lambda: "nvcc"
cuda.driver._is_cuda_python = lambda: True
cuda.driver.get_build_version = cuda.runtime.runtimeGetVersion


class SimpleReduction:
    """CuPy's private way to write a reduction of one array: one ReductionKernel for each pair of dtypes."""

    def __init__(self, name: str, types: tuple[str, ...], expressions: tuple, identity: Any) -> None:
        self.kernels = {}
        for pair in types:
            source, target = (numpy.dtype(letter) for letter in pair.split("->"))
            texts = [text.replace("in0", "x").replace("out0", "y") for text in expressions[:3]]
            kernel = simulated_cupy.ReductionKernel(f"{source} x", f"{target} y", *texts, identity, name)
            self.kernels[source] = kernel

    @property
    def _cached_codes(self) -> dict:
        return {key: code for k in self.kernels.values() for key, code in k._cached_codes.items()}

    def __call__(
        self, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        if isinstance(a, numpy.ndarray):
            raise TypeError("Argument 'a' has incorrect type")
        a = simulated_cupy.asarray(a.__cupy_get_ndarray__() if hasattr(a, "__cupy_get_ndarray__") else a)
        kernel = self.kernels.get(a.dtype) or next(iter(self.kernels.values()))
        return kernel(a.astype(kernel.in_params[0].dtype), axis=axis, keepdims=keepdims, out=out)


internal = SimpleNamespace(prod=math.prod)
module(
    "cupy._core",
    internal=internal,
    get_reduction_accelerators=list,
    set_reduction_accelerators=lambda accelerators: None,
    create_reduction_func=SimpleReduction,
    elementwise_copy=lambda src, dst: dst.__setitem__(Ellipsis, src),
    fusion=module("cupy._core.fusion"),
)
alias("cupy._core.internal", internal)
module(
    "cupy._core._accelerator",
    ACCELERATOR_CUB=1,
    get_reduction_accelerators=list,
    set_reduction_accelerators=lambda accelerators: None,
    get_routine_accelerators=list,
    set_routine_accelerators=lambda accelerators: None,
)
module("cupy_backends")
module("cupy_backends.cuda")
module("cupy_backends.cuda.libs")
module("cupy_backends.cuda.libs.nvrtc", getVersion=lambda: (13, 5))

module("cupyx.scipy")
module("cupyx.scipy.sparse")

# CuPy's random states, which its testing tools save and restore.
simulated_cupy.random._generator = SimpleNamespace(_random_states={})
reset = simulated_cupy.random.reset_states


def reset_states() -> None:
    simulated_cupy.random._generator._random_states = {}
    reset()


simulated_cupy.random.reset_states = reset_states

if SOURCE:
    place = os.path.join(SOURCE, "cupy", "testing")
    spec = importlib.util.spec_from_file_location(
        "cupy.testing", os.path.join(place, "__init__.py"), submodule_search_locations=[place]
    )
    assert spec and spec.loader
    testing = importlib.util.module_from_spec(spec)
    sys.modules["cupy.testing"] = testing
    simulated_cupy.testing = testing
    with contextlib.suppress(AttributeError):
        simulated_cupy.random.seed(0)
    spec.loader.exec_module(testing)
