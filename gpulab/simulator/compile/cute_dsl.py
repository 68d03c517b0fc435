"""CuTe DSL, NVIDIA's package: made to compile for the simulated GPU, and to hand over the PTX.

Its compiler needs no driver. Left alone it compiles for the GPU that is there (or for Blackwell), keeps no
PTX, leaves source lines out, and keeps machine code in files. `prepare` changes these four, in this process.
It also overrules the option ``--enable-tvm-ffi``, which would need one more library.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any

from .kernel import Capability, CompiledKernel
from .packages import Internals
from .versions import target_of

PACKAGE = Internals(
    name="CuTe DSL",
    distribution="nvidia-cutlass-dsl",
    tested=("4.8.1",),
    extra="cute",
    used=(
        "cutlass._mlir.execution_engine:ExecutionEngine.raw_register_runtime",
        "cutlass.base_dsl.dsl:BaseDSL.mangle_name",
        "cutlass.base_dsl.dsl:BaseDSL.generate_mlir_function_types",
        "cutlass.base_dsl.env_manager:EnvironmentVarManager.arch",
        "cutlass.base_dsl.compiler:CompileOptions.apply_envar_settings",
        "cutlass.base_dsl.compiler:CompileOptions._set_artifact_dump_paths",
        "cutlass.base_dsl.compiler:CompileOptions.enable_tvm_ffi",
        "cutlass.base_dsl.compiler:KeepPTX",
        "cutlass.base_dsl.compiler:GenerateLineInfo",
        "cutlass.base_dsl.jit_executor:ExecutionArgs.generate_execution_args",
        "cutlass.base_dsl.jit_executor:ExecutionArgs.record_arg_specs_from_compile_args",
        "cutlass.base_dsl.jit_executor:JitExecutor.run_compiled_program",
        "cutlass.cutlass_dsl.cuda_jit_executor:CudaDialectJitCompiledFunction._load_cuda_library",
        "cutlass.cutlass_dsl.cuda_jit_executor:CudaDialectJitCompiledFunction.num_devices",
        "cutlass.cute.runtime:_Tensor.load_dltensor",
        "cutlass.cute:copy",
        "cutlass.cute.testing:benchmark",
    ),
)
# Capabilities whose code may use what only that GPU has; the others have no such variant.
ARCHITECTURE_SPECIFIC = (9, 0)
PREFIX = "cutlass_"
OURS = "_kept_for_gpulab"  # marks an option that nobody but `prepare` has set

_names: dict[str, str] = {}  # of functions, by what the compiler calls them with their arguments' types


def architecture(cc: Capability) -> str:
    """``sm_80``, or with a letter from compute capability 9.0 on: ``sm_90a``."""
    return f"sm_{cc[0]}{cc[1]}" + ("a" if cc >= ARCHITECTURE_SPECIFIC else "")


@cache
def _folder() -> Any:
    """Where the compiler leaves each PTX for a moment."""
    return tempfile.TemporaryDirectory(prefix="gpulab-cute-")


def prepare(capability: Callable[[], Capability]) -> None:
    """Make the installed package compile for `capability()`, which is asked for each kernel again.

    A learner's CUTE_DSL_ARCH still decides. Raises MissingCompiler where the package is absent or built
    otherwise than those that were tested.
    """
    PACKAGE.check()
    from cutlass.base_dsl.compiler import CompileOptions, GenerateLineInfo, KeepPTX
    from cutlass.base_dsl.dsl import BaseDSL
    from cutlass.base_dsl.env_manager import EnvironmentVarManager

    named = EnvironmentVarManager.arch

    def of_the_device(self: Any) -> str:
        return self._arch or architecture(capability())

    def apply_envar_settings(self: Any, envar: Any, function_name: str) -> None:
        envar.disable_file_caching = True  # machine code in a file brings no PTX along
        keep = self.options[KeepPTX]  # may have been here before
        wanted = envar.keep_ptx or (keep.value and not getattr(keep, OURS, False))
        keep.value = self.options[GenerateLineInfo].value = True
        setattr(keep, OURS, not wanted)
        apply(self, envar, function_name)
        if not wanted:
            arch = self.gpu_arch or envar.arch
            self._set_artifact_dump_paths(keep, _folder().name, function_name, arch, "ptx", "full_ptx_path")

    def mangle_name(self: Any, function_name: str, *rest: Any) -> str:
        mangled: str = mangle(self, function_name, *rest)
        _names[mangled] = function_name.removeprefix(PREFIX)
        return mangled

    apply, mangle = CompileOptions.apply_envar_settings, BaseDSL.mangle_name
    BaseDSL.mangle_name = mangle_name
    EnvironmentVarManager.arch = property(of_the_device, named.fset, named.fdel)
    CompileOptions.apply_envar_settings = apply_envar_settings
    # Compiled functions would be called through the library TVM FFI; ours take its arguments without it.
    CompileOptions.enable_tvm_ffi = property(lambda self: False)


def cute_kernel(ptx: str, entry: str) -> CompiledKernel:
    """A kernel of the PTX that CuTe DSL made, under the name that the learner gave it."""
    mangled = entry.removeprefix("kernel_").rpartition("_")[0]
    name = _names.get(mangled, entry)
    return CompiledKernel(name, entry, ptx, target_of(ptx), f"CuTe DSL {PACKAGE.version}")
