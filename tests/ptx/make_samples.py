"""Compile the kernels in samples/ into valid/*.ptx, and write beside each the blocks that the parser finds.

    python tests/ptx/make_samples.py            compile all again: needs numba-cuda, NVRTC, Triton and no GPU
    python tests/ptx/make_samples.py blocks     only write the blocks: read the difference before a commit

The files written_*.ptx are written by hand and stay as they are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

HERE = Path(__file__).parent
SAMPLES, VALID = HERE / "samples", HERE / "valid"

sys.path.insert(0, str(HERE.parents[1]))

from gpulab.simulator import ptx  # noqa: E402


def numba_samples() -> Iterator[tuple[str, str]]:
    import numba_kernels
    from numba import cuda

    stand_in = SimpleNamespace(compute_capability=(8, 0))
    with patch("numba.cuda.dispatcher.get_current_device", lambda: stand_in):
        for kernel, types in numba_kernels.KERNELS.items():
            text, _ = cuda.compile_ptx(kernel, types, device=False, cc=(8, 0), lineinfo=True)
            yield kernel.__name__, _shorten_names(text, kernel.__name__)


def _shorten_names(text: str, kernel: str) -> str:
    """Numba's mangled names are longer than the code: the kernel gets its own name, others get numbers."""
    (entry,) = re.findall(r"\.entry (\w+)", text)
    text = text.replace(entry, kernel)
    for number, name in enumerate(dict.fromkeys(re.findall(r"\b_ZN\w{60,}", text))):
        text = text.replace(name, f"mangled_{number}")
    return text


def nvrtc_samples() -> Iterator[tuple[str, str]]:
    source = (SAMPLES / "kernels.cu").read_text()
    for match in re.finditer(r"^//// (\w+)(.*)\n((?:(?!////).*\n)*)", source, re.MULTILINE):
        name, options, code = match.groups()
        yield name, _compile_with_nvrtc(code, name, options.split())


def _compile_with_nvrtc(code: str, name: str, options: list[str]) -> str:
    from cuda.bindings import nvrtc
    from cuda.pathfinder import find_nvidia_header_directory

    headers = f"--include-path={find_nvidia_header_directory('cudart')}"
    arguments = [option.encode() for option in ["--gpu-architecture=compute_80", headers, *options]]
    _, program = nvrtc.nvrtcCreateProgram(code.encode(), f"{name}.cu".encode(), 0, [], [])
    (error,) = nvrtc.nvrtcCompileProgram(program, len(arguments), arguments)
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(f"{name}: {log.decode()}")
    text = b" " * nvrtc.nvrtcGetPTXSize(program)[1]
    nvrtc.nvrtcGetPTX(program, text)
    return text.decode().rstrip("\0")


def triton_samples() -> Iterator[tuple[str, str]]:
    import triton
    import triton_kernels
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    for kernel, capability, arguments in triton_kernels.KERNELS:
        constants = {name: value for name, value in arguments.items() if isinstance(value, int)}
        types = {name: "constexpr" if name in constants else kind for name, kind in arguments.items()}
        plain = {name: kind.removesuffix(":16") for name, kind in types.items()}
        aligned = {
            (place,): [["tt.divisibility", 16]]
            for place, kind in enumerate(types.values())
            if kind.endswith(":16")
        }
        source = ASTSource(kernel, plain, constexprs=constants, attrs=aligned)
        compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32))
        yield kernel.fn.__name__, compiled.asm["ptx"]


def write_samples() -> None:
    sys.path.insert(0, str(SAMPLES))
    makers = {"numba": numba_samples, "nvrtc": nvrtc_samples, "triton": triton_samples}
    for compiler, samples in makers.items():
        for old in VALID.glob(f"{compiler}_*"):
            old.unlink()
        for name, text in samples():
            lines = _without_machine(text).splitlines()
            path = VALID / f"{compiler}_{name}.ptx"
            path.write_text("\n".join(line.rstrip() for line in lines) + "\n")


def _without_machine(text: str) -> str:
    """File names without folders, debug sections without the bytes that spell folders."""
    text = re.sub(r'(\.file\s+\d+\s+")[^"\n]*/', r"\1", text)
    return re.sub(r"(\.section\s+\S+\s*\{(?:[^}\n]*\n){0,3})[^}]*\}", r"\1}", text)


def write_blocks() -> None:
    for path in sorted(VALID.glob("*.ptx")):
        path.with_suffix(".blocks").write_text(list_blocks(ptx.parse(path.read_text())))


def list_blocks(module: ptx.Module) -> str:
    """One line a block: label, successors, size, first and last instruction, source lines, live registers."""
    lines = []
    for function in module.functions.values():
        lines.append(f"{'entry' if function.entry else 'function'} {function.name}: {_summary(function)}")
        for block, live in zip(function.blocks, ptx.live_registers(function), strict=True):
            lines.append(f"  {_block_line(block)}, {len(live)} live")
    return "\n".join(lines) + "\n"


def _summary(function: ptx.Function) -> str:
    parameters = f"{len(function.parameters)} parameters"
    if function.extern:
        return f"extern, {parameters}"
    names = " ".join(f"{variable.space}:{variable.name}" for variable in function.variables)
    return f"{parameters}, {len(function.registers)} registers, variables {names or '-'}"


def _block_line(block: ptx.BasicBlock) -> str:
    first, last = block.instructions[0], block.instructions[-1]
    source = dict.fromkeys(str(each.location.line) for each in block.instructions if each.location)
    return (
        f"{block.index:3} {block.label or '-':16} → {' '.join(map(str, block.successors)) or 'end':10}"
        f"{len(block.instructions):4} × {ptx.print_instruction(first)} … {ptx.print_instruction(last)}"
        f", lines {' '.join(source) or '-'}"
    )


if __name__ == "__main__":
    if sys.argv[1:] != ["blocks"]:
        write_samples()
    write_blocks()
