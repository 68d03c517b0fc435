"""Which of numba-cuda's tests ask something of a simulator of kernels, as data that a reader can check.

None of this looks at a result. `PACKAGES` is where tests are looked for; a test that launches no kernel is
left out by the script. Of the rest, a test is not applicable if it matches `NOT_APPLICABLE` (by its name) or
if its own text uses one of `TELLTALES`, or if the suite itself skips it on a machine like this one. What is
left out has no part in running kernels. What kernels may do and the simulator cannot (memory from
NRT, exceptions of debug mode) is applicable, and fails; so do tests that go beyond their own arrays.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

# The GPU that is simulated: of compute capability 9.0, so that the suite skips little for want of one.
GPU = "H100"

# Below numba.cuda.tests.
PACKAGES = ("cudapy", "cudadrv", "doc_examples")

# Launches by other means than kernel[grid, block](…): ufuncs and reductions. Shell patterns on names of tests.
LAUNCHES = (
    "cudapy.test_vectorize*",
    "cudapy.test_gufunc*",
    "cudapy.test_reduction.*",
    "doc_examples.test_ufunc.*",
)

# Classes of reasons.
LLVM = "reads LLVM IR, SASS, debug information or numba's intermediate representation"
LINKER = "tests nvJitLink, LTO, linking of machine code, or call-backs of the driver's module loader"
DRIVER = "tests the driver API, contexts, memory managers or IPC of a real driver"
PROCESSES = "starts other Python processes, which import numba.cuda by themselves"
CACHE = "tests numba's cache of compiled files"
INTERNALS = "tests what is inside numba's dispatcher and is not its public API"
STREAMS = "tests which synchronisations are asked of streams; on the simulator all work is done on return"
WORDS = "compares the words of an error message; gpulab has words of its own"

# What a worker says of a test that compares the words of an error.
COMPARES_WORDS = "<the words of an error>"

# Shell patterns on module.Class.test → the class of reasons. The first that matches counts.
NOT_APPLICABLE: tuple[tuple[str, str], ...] = (
    ("cudadrv.test_context_stack.*", DRIVER),
    ("cudadrv.test_cuda_driver.*", DRIVER),
    ("cudadrv.test_nvjitlink.*", LINKER),
    ("cudadrv.test_module_callbacks.*", LINKER),
    ("cudapy.test_caching.*", CACHE),
    ("cudapy.test_launch_config_sensitive.*", INTERNALS),
    ("cudapy.test_cuda_array_interface.*.test_launch_sync*", STREAMS),
)

# Where the words that are compared are the kernel's own: of an exception that it raises.
KERNELS_OWN_WORDS = (
    "cudapy.test_exception.*",
    "cudapy.test_userexc.*",
    "cudapy.test_recursion.*",
)

# Names in a test's own text → the class of reasons.
TELLTALES = {
    "inspect_llvm": LLVM,
    "inspect_sass": LLVM,
    "inspect_sass_cfg": LLVM,
    "inspect_types": LLVM,
    "assertFileCheckLLVM": LLVM,
    "assertFileCheckAsm": LLVM,
    "assertFileCheckMatches": LLVM,
    "get_llvm_str": LLVM,
    "inspect_lto_ptx": LINKER,
    "run_in_subprocess": PROCESSES,
    "subprocess": PROCESSES,
    "multiprocessing": PROCESSES,
    "mp": PROCESSES,
    "_compile_for_args": INTERNALS,
    "_codelibrary": INTERNALS,
    "specializations": INTERNALS,
    "_reload_init": CACHE,
    COMPARES_WORDS: WORDS,
}


def not_applicable(name: str, names_in_its_text: Iterable[str]) -> str:
    """The class of reasons why a test is not applicable, or ""."""
    for pattern, reason in NOT_APPLICABLE:
        if fnmatch.fnmatchcase(name, pattern):
            return reason
    words = {word for word in names_in_its_text if word in TELLTALES}
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in KERNELS_OWN_WORDS):
        words.discard(COMPARES_WORDS)
    return TELLTALES[min(words)] if words else ""
