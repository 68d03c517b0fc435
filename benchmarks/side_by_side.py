"""The same kernels in numba, CUDA C++, Triton, Gluon, CuTe DSL and cuTile, on the simulated A100.

    python benchmarks/side_by_side.py

Prints a row for each kernel and language: lines of code (kernel and launch, no blank lines, comments and
docstrings), bytes of global memory and warp instructions, both counted, the modelled time on an A100, and the
processor time of the first call, which compiles, and of the second. `--markdown` prints the table of
docs/languages.md. Every result is compared with NumPy's. Each language runs in a process of its own.
"""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
LANGUAGES = {
    "numba_": "numba",
    "cuda_c": "CUDA C++",
    "triton_": "Triton",
    "gluon_": "Gluon",
    "cute_dsl": "CuTe DSL",
    "cutile": "cuTile",
}
COLUMNS = (
    "kernel",
    "language",
    "lines",
    "MB moved",
    "warp instructions",
    "modelled µs",
    "first call s",
    "second s",
)


def problems() -> dict[str, tuple[list[np.ndarray], np.ndarray]]:
    """Inputs, and what NumPy makes of them."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=1 << 18).astype(np.float32) for _ in range(2))
    x = rng.normal(size=(512, 512)).astype(np.float32)
    left, right = (rng.normal(size=(256, 256)).astype(np.float16) for _ in range(2))
    e = np.exp(x - x.max(1, keepdims=True))
    q, k, v = (rng.normal(size=(256, 64)).astype(np.float16) for _ in range(3))
    weights = np.exp(q.astype(np.float32) @ k.astype(np.float32).T / 8)
    attended = weights / weights.sum(1, keepdims=True) @ v.astype(np.float32)
    return {
        "add": ([a, b], a + b),
        "transpose": ([x], x.T),
        "softmax": ([x], e / e.sum(1, keepdims=True)),
        "matmul": ([left, right], left.astype(np.float32) @ right.astype(np.float32)),
        "attention": ([q, k, v], attended),
    }


def lines_of(path: Path, name: str) -> int:
    """Lines of code of a kernel, of what it calls and of what launches it."""
    text = path.read_text(encoding="utf-8")
    if path.stem == "cuda_c":
        code = text.split(f"void {name}(")[1].split("\n}\n")[0]
        host = ast.get_source_segment(text, next(_functions(text, {name}))) or ""
        return len(code.splitlines()) + 1 + len(host.splitlines())
    wanted = {name, f"{name}_kernel", f"launch_{name}"}
    wanted |= {call.func.id for f in _functions(text, wanted) for call in ast.walk(f) if _names(call)}
    found = 0
    for function in _functions(text, wanted):
        docstring = isinstance(function.body[0], ast.Expr) and isinstance(
            function.body[0].value, ast.Constant
        )
        segment = ast.get_source_segment(text, function) or ""
        found += len([line for line in segment.splitlines() if line.strip()]) - docstring
        found += len(function.decorator_list)
    return found


def _names(call: ast.AST) -> bool:
    """Whether it calls a function by a name alone: one of the file may be a part of the kernel."""
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name)


def _functions(text: str, names: set[str]) -> Any:
    return (n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name in names)


def measure(language: str) -> list[dict[str, Any]]:
    """One row for each kernel that the language has."""
    sys.path.insert(0, str(HERE / "side_by_side_kernels"))
    from gpulab import cupy as cp
    from gpulab.frontends.driver import counted
    from gpulab.machine import modelled

    kernels = importlib.import_module(language)
    rows = []
    for name, (inputs, expected) in problems().items():
        run = getattr(kernels, name, None)
        if run is None:
            continue
        given = [cp.asarray(array) for array in inputs]
        out = cp.zeros(expected.shape, np.float32)
        seconds = []
        for _ in range(2):
            start = time.process_time() + sum(_children())
            run(*given, out)
            seconds.append(time.process_time() + sum(_children()) - start)
        np.testing.assert_allclose(cp.asnumpy(out), expected, rtol=1e-3, atol=2e-3)
        moved, instructions = counted(lambda run=run, given=given, out=out: run(*given, out))
        model = modelled(run, *given, out)
        rows.append(
            {
                "kernel": name,
                "language": LANGUAGES[language],
                "lines": lines_of(HERE / "side_by_side_kernels" / f"{language}.py", name),
                "MB moved": f"{moved / 1e6:.2f}",
                "warp instructions": f"{instructions:,}",
                "modelled µs": f"{model.seconds * 1e6:.1f}",
                "first call s": f"{seconds[0]:.2f}",
                "second s": f"{seconds[1]:.2f}",
            }
        )
    return rows


def _children() -> tuple[float, float]:
    import os

    times = os.times()
    return times.children_user, times.children_system


def main() -> None:
    """The command."""
    if len(sys.argv) > 2:
        print(json.dumps(measure(sys.argv[2])))
        return
    rows: list[dict[str, Any]] = []
    for language in LANGUAGES:
        child = [sys.executable, __file__, "--language", language]
        done = subprocess.run(child, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{LANGUAGES[language]}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            continue
        rows += json.loads(done.stdout.strip().splitlines()[-1])
    rows.sort(key=lambda row: [*problems()].index(row["kernel"]))
    if "--markdown" in sys.argv:
        print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
        for row in rows:
            print("| " + " | ".join(str(row[column]) for column in COLUMNS) + " |")
        return
    for row in [dict(zip(COLUMNS, COLUMNS, strict=True)), *rows]:
        print("".join(f"{row[column]!s:>{18 if column != 'kernel' else 10}}" for column in COLUMNS))


if __name__ == "__main__":
    main()
