"""A learner's function → PTX by the vendor's compiler, on any machine; and what ptxas says of the PTX."""

from .kernel import CompiledKernel, CompileError
from .numba_kernel import NumbaFunction, numba_kernel, without_driver
from .ptxas import Resources, resources
from .stand_ins import copy_with
from .versions import compiler_version, supported_capabilities

__all__ = [
    "CompileError",
    "CompiledKernel",
    "NumbaFunction",
    "Resources",
    "compiler_version",
    "copy_with",
    "numba_kernel",
    "resources",
    "supported_capabilities",
    "without_driver",
]
