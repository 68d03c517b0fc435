"""What NVRTC says of CUDA C++ that does not compile, in a learner's words: each error beside its line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .kernel import CompileError, cure_of

MOST = 3  # errors that are shown; what follows is mostly a consequence of the first

ERROR = re.compile(
    r"^(?:(?P<file>.*)\((?P<line>\d+)\)|At end of source): (?:catastrophic )?error:\s*(?P<what>.*)$"
)
# What follows an error, indented further than the source text below it.
DETAIL = re.compile(r"^ {8,}(?P<what>argument types are.*|object type is.*|detected during.*)$")
FROM = re.compile(r"at line (?P<line>\d+)$")  # … the learner's line that led to an error in a header
OURS = re.compile(r"/?<cuda \w+>/")  # the names that `cuda_c` gives to texts
NAMES = "__nv_name_map"  # the "file" of the C++ names that were asked for

# An unknown type in a declaration has these besides, and before it.
UNDEFINED = re.compile(r'identifier ".*" is undefined')
CONSEQUENCE = re.compile(
    r'attribute "__global__" does not apply|namespace scope variable without|expected a "[;)]"'
    r'|incomplete type "void" is not allowed'
)

# What the compiler's words mean here: pattern → what to do. The first that fits is shown.
CURES = (
    (r'cannot open source file "(cub|thrust|cuda/std|cuda|nv)/',
     "CUDA's C++ libraries are in the package nvidia-cuda-cccl (nvidia-cuda-cccl-cu12 for CUDA 12). "
     "Is it installed, and is the name right?"),
    (r'cannot open source file "curand',
     "cuRAND's headers are in the package nvidia-curand (nvidia-curand-cu12 for CUDA 12). "
     "Is it installed, and is the name right?"),
    (r'cannot open source file "(iostream|fstream|sstream|iomanip|ostream|string|vector|map|set|list|deque'
     r"|queue|stack|unordered_map|unordered_set|thread|mutex|future|stdexcept|filesystem|sys/.*|unistd\.h|getopt\.h"
     r'|omp\.h|cublas.*|cufft.*|cusparse.*|cusolver.*|cudnn.*|nvrtc\.h|helper_.*\.h)"',
     "That header is for host code, which NVRTC does not compile: remove the #include and the functions "
     "that use it."),
    (r'cannot open source file "(.*)"',
     "Give the folder of the file as an option, options=('-I/folder',), or put its text into the source."),
    (r'identifier "(__)?u?int(8|16|32|64)_t" is undefined',
     "Add #include <cstdint>."),
    (r'identifier "(__half2?|half2?|__float2half.*|__half2float)" is undefined',
     "Add #include <cuda_fp16.h>."),
    (r'identifier "(__nv_bfloat16\d?|nv_bfloat16\d?|__float2bfloat16.*)" is undefined',
     "Add #include <cuda_bf16.h>."),
    (r'identifier "__nv_fp8_\w+" is undefined', "Add #include <cuda_fp8.h>."),
    (r'(name|identifier).*"(nvcuda|wmma)"', "Add #include <mma.h>."),
    (r'(name|identifier|namespace).*"(cooperative_groups|cg)"',
     "Add #include <cooperative_groups.h> and namespace cg = cooperative_groups;"),
    (r'identifier "complex" is undefined|complex is not a template', "Add #include <cupy/complex.cuh>."),
    (r'identifier "(INFINITY|NAN|HUGE_VALF?|M_\w+)" is undefined', "Add #include <cmath>."),
    (r'identifier "(FLT|DBL)_\w+" is undefined', "Add #include <cfloat>."),
    (r'identifier "(U?(CHAR|SHRT|INT|LONG|LLONG)_(MIN|MAX|BIT))" is undefined', "Add #include <climits>."),
    (r'more than one instance of overloaded function "\w+" matches the argument list',
     "Is it in std, too? Without `using namespace std;` the name alone is CUDA's function."),
    (r"A function (without execution space annotations|explicitly marked as a __host__).* \(\S+, line \d+\)",
     "That header has code for the host, which NVRTC does not compile. Thrust's algorithms and cub's Device… "
     "functions launch kernels; within one, use <cub/block/…> and <cub/warp/…>."),
    (r'identifier "(T|U|V)" is undefined',
     "A template parameter? Write template<typename T> before __global__."),
    (r'identifier "(cp|cupy|np|numpy)\w*" is undefined', "This is C: Python's names do not exist here."),
    (r'identifier "(range|len|None|True|False|and|or|not)" is undefined', "This is C, not Python."),
    (r'identifier "(\w+)" is undefined', "Is it misspelt, or declared further down?"),
    (r'expected a ";"', "Is a ; missing at the end of the line before?"),
    (r"calling a __host__ function.* from a __global__ function",
     "Write __device__ before the function that is called."),
    (r"host functions are not allowed in JIT mode", "Write __device__ before the function."),
    (r"host variables are not allowed in JIT mode", "Write __device__ or __constant__ before the variable."),
    (r"a __global__ function (must have a void return type|cannot have a .* return type)",
     "A kernel returns nothing: write void, and pass an array for the result."),
    (r'more than one instance of overloaded function "\w+" has "C" linkage',
     "A function of CUDA's has this name: call the kernel something else."),
    (r"kernel launch from __device__ or __global__ functions requires separate compilation mode",
     "A kernel that launches kernels is not simulated: launch it from Python."),
)  # fmt: skip


@dataclass(frozen=True)
class LineError:
    """One error: the line of the learner's text (0 where the compiler names none) and what is wrong."""

    line: int
    what: str


class CudaCompileError(CompileError):
    """CUDA C++ that NVRTC refuses: `log` is all it said, `errors` its errors line by line."""

    def __init__(
        self, kernel: str, errors: tuple[LineError, ...], texts: tuple[str, ...], log: str, compiler: str
    ):
        self.errors, self.texts, self.log, self.compiler = errors, texts, log, compiler
        first, *others = list(zip(errors, texts, strict=True))[:MOST]
        why = [first[0].what]
        for error, text in others:
            why += [f"    {error.line} │ {text}"] if error.line else []
            why.append(error.what)
        if more := len(errors) - MOST:
            why += [f"… and {more} more error{'s' if more > 1 else ''}."] if more > 0 else []
        super().__init__(kernel, "\n".join(why), _cure(errors[:MOST]), first[0].line, first[1])

    def get_message(self) -> str:
        """NVRTC's whole log."""
        return self.log

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kernel, self.errors, self.texts, self.log, self.compiler)


def in_words(kernel: str, source: str, log: str, compiler: str) -> CudaCompileError:
    """The error for what NVRTC wrote about `source`."""
    errors = _errors(log) or (LineError(0, log),)
    lines = source.splitlines()
    texts = tuple(lines[e.line - 1].strip() if 0 < e.line <= len(lines) else "" for e in errors)
    return CudaCompileError(kernel, errors, texts, OURS.sub("", log), compiler)


def _errors(log: str) -> tuple[LineError, ...]:
    found: list[LineError] = []
    for text in log.splitlines():
        if match := ERROR.match(text):
            file, line, what = match["file"], int(match["line"] or 0), match["what"]
            if file == NAMES:
                line = 0
            elif file and not OURS.match(file):
                what, line = f"{what} ({file.rpartition('/')[2]}, line {line})", 0
            found.append(LineError(line, what))
        elif found and (match := DETAIL.match(text)):
            line, what = found[-1].line, f"{found[-1].what}\n{match['what']}"
            if not line and (from_ := FROM.search(text)):
                line = int(from_["line"])
            found[-1] = LineError(line, what)
    undefined = {error.line for error in found if UNDEFINED.match(error.what)}
    causes = [e for e in found if e.line not in undefined or not CONSEQUENCE.search(e.what)]
    return tuple(dict.fromkeys(causes))


def _cure(errors: tuple[LineError, ...]) -> str:
    """What to do about the first error that we know something about."""
    return next(filter(None, (cure_of(error.what, CURES) for error in errors)), "")
