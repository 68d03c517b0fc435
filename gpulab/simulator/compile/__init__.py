"""A learner's function → PTX by the vendor's compiler, on any machine; and what ptxas says of the PTX."""

from .cuda_c import CudaModule, cuda_c_module
from .cuda_errors import CudaCompileError
from .kernel import CompiledKernel, CompileError
from .lines import is_learners
from .machine_code import NoDisassembler, sass
from .numba_kernel import NumbaFunction, numba_kernel, without_driver
from .ptxas import Resources, registers_at_entry, resources
from .stand_ins import copy_with
from .versions import compiler_version, supported_capabilities

__all__ = [
    "CompileError",
    "CompiledKernel",
    "CudaCompileError",
    "CudaModule",
    "NoDisassembler",
    "NumbaFunction",
    "Resources",
    "compiler_version",
    "copy_with",
    "cuda_c_module",
    "is_learners",
    "numba_kernel",
    "registers_at_entry",
    "resources",
    "sass",
    "supported_capabilities",
    "without_driver",
]
