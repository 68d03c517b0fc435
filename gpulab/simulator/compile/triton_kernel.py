"""A Triton kernel → PTX, by Triton itself. Needs no driver when the target is named."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from .kernel import AssertionDoesNotHold, Capability, CompiledKernel, CompileError

Path = tuple[int, ...]  # the number of a parameter, and where in it, if it is a tuple
# In what Triton says of an index that it does not know; of a pointer it says nothing.
_OF_AN_INDEX = ("`_semantic` argument", "unsupported tensor index", "__setitem__")


@dataclass(frozen=True)
class TritonKernel:
    """What Triton made: the kernel, and the dynamic shared memory and the threads that each block wants.

    A program is a cluster of `blocks`, and each block wants `scratch_bytes` of global memory for itself.
    `boxes` are Triton's words for what TMA is to move for each tensor descriptor among the arguments.
    """

    kernel: CompiledKernel
    shared_bytes: int
    threads: int
    blocks: int = 1
    scratch_bytes: int = 0
    boxes: tuple[Mapping[str, Any], ...] = ()
    asm: Any = None  # all that Triton made, by its name, as Triton keeps it
    metadata: Any = None  # what Triton says of it


def triton_kernel(
    function: Any,
    signature: Mapping[str, Any],
    constants: Mapping[Path, Any],
    aligned: tuple[Path, ...],
    cc: Capability,
    options: Mapping[str, Any],
) -> TritonKernel:
    """Compile a ``JITFunction``.

    `signature` maps each parameter to Triton's name of its type (``*fp32``, ``i32``, ``constexpr``), or to a
    tuple of them; `constants` are the values of those of type constexpr; `aligned` are divisible by 16.
    Raises CompileError with Triton's message and the line.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.errors import CompilationError
    from triton.experimental.gluon._runtime import GluonASTSource  # Triton 3.6 has it there alone

    source = (GluonASTSource if function.is_gluon() else ASTSource)(
        function,
        dict(signature),
        dict(constants),
        {path: [["tt.divisibility", 16]] for path in aligned},
    )
    target = GPUTarget("cuda", cc[0] * 10 + cc[1], 32)
    try:
        made = triton.compile(source, target=target, options={"enable_fp_fusion": True, **options})
    except CompilationError as error:
        pointers = {name for name, kind in signature.items() if str(kind).startswith("*")}
        raise _in_words(function, error, pointers) from error
    ptx = _in_its_file(made.asm["ptx"], function.fn.__code__.co_filename)
    kernel = CompiledKernel(function.__name__, made.metadata.name, ptx, cc, f"Triton {triton.__version__}")
    about = made.metadata
    return TritonKernel(
        kernel,
        about.shared,
        about.num_warps * 32,
        about.num_ctas,
        getattr(about, "global_scratch_size", 0),
        tuple(getattr(about, "tensordesc_meta", None) or ()),
        type(made.asm)({**made.asm, "ptx": ptx}),
        about,
    )


def _in_its_file(ptx: str, path: str) -> str:
    """The PTX with the kernel in the file that it is in now.

    Triton keeps what it compiled, by the kernel's text and first line. The file is then that of the first
    compilation: a notebook's cell of another day, whose lines nobody can read any more.
    """
    own = re.compile(r"^\s*\.loc\s+(\d+)\s", re.MULTILINE).search(ptx, ptx.index(".entry"))
    if own is None:
        return ptx
    named = re.compile(rf'^(\s*\.file\s+{own[1]}\s+)"[^"\n]*"', re.MULTILINE)
    return named.sub(lambda match: f'{match[1]}"{path}"', ptx)


def _in_words(function: Any, error: Any, pointers: Set[str]) -> CompileError:
    """Triton's error with the line of the learner's own file; with the cure where a pointer is indexed."""
    relative = getattr(error.node, "lineno", 0)
    lines = (error.src or "").splitlines()
    text = lines[relative - 1].strip() if 0 < relative <= len(lines) else ""
    line = function.starting_line_number + relative - 1 if relative else 0
    asserted = type(error).__name__ == "CompileTimeAssertionFailure"
    refused = "The assertion does not hold." if asserted else "Triton refused this line."
    why = (error.error_message or str(error.__cause__ or refused)).strip()
    if any(words in why for words in _OF_AN_INDEX) and (name := _indexed(error.node, pointers)):
        why = (
            f"`{name}` is a pointer, which has no elements to index. Load with `tl.load({name} + i)`, store "
            f"with `tl.store({name} + i, values)`. (Triton says: {why})"
        )
    kind = AssertionDoesNotHold if asserted else CompileError
    return kind(function.__name__, why, line=line, text=text)


def _indexed(node: Any, pointers: Set[str]) -> str:
    """The first of `pointers` that the refused piece of source indexes; empty where none is."""
    inside = ast.walk(node) if isinstance(node, ast.AST) else ()
    names = (n.value.id for n in inside if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name))
    return next((name for name in names if name in pointers), "")
