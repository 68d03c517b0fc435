"""Imports typed out of habit lead a learner's code to our faces, and nobody else's."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gpulab

KERNEL = """
@{jit}
def kernel(a):
    tile = {cuda}.shared.array(32, {float32})
    i = {cuda}.grid(1)
    tile[i] = a[i]
    a[i] = tile[i] + {float32}(1)

a = np.zeros(32, np.float32)
kernel[1, 32](a)
found = a.tolist()
"""
PLAIN = {"jit": "cuda.jit", "cuda": "cuda", "float32": "np.float32"}


def learners(source: str) -> dict[str, Any]:
    """The names that a cell leaves behind."""
    names: dict[str, Any] = {"__name__": "__main__", "np": np, "gpulab": gpulab}
    exec(compile(source, "<cell a>", "exec"), names)
    return names


@pytest.mark.parametrize(
    ("imports", "words"),
    [
        ("from numba import cuda", PLAIN),
        ("from numba import cuda as cuda, float32", PLAIN | {"float32": "float32"}),
        ("import numba.cuda as nc", {"jit": "nc.jit", "cuda": "nc", "float32": "np.float32"}),
        ("import numba", {"jit": "numba.cuda.jit", "cuda": "numba.cuda", "float32": "numba.float32"}),
        ("import numba.cuda", {"jit": "numba.cuda.jit", "cuda": "numba.cuda", "float32": "numba.float32"}),
        ("from numba import cuda; from numba.cuda import jit", PLAIN | {"jit": "jit"}),
        ("from numba.cuda import *; from gpulab import cuda", PLAIN | {"jit": "jit"}),
    ],
)
def test_a_kernel_runs_whatever_numba_is_called(imports: str, words: dict[str, str]) -> None:
    assert learners(f"{imports}\n{KERNEL.format(**words)}")["found"] == [1] * 32
    # … and those after it, which the real numba.cuda would have disturbed
    assert learners(f"from gpulab import cuda\n{KERNEL.format(**PLAIN)}")["found"] == [1] * 32


def test_what_else_numba_has_is_numbas_own() -> None:
    import numba
    import numba.typed

    names = learners("import numba, numba.typed\nfrom numba import njit\nfrom numba.typed import List")
    assert names["njit"] is numba.njit and names["List"] is numba.typed.List
    assert names["numba"].__version__ == numba.__version__ and names["numba"].prange is numba.prange


def test_cupy_and_triton_are_ours_too() -> None:
    source = "import cupy as cp\nimport cupyx.profiler\nfrom cupy.cuda import Device\nfrom cupyx import rsqrt"
    names = learners(source)
    assert names["cp"] is gpulab.cupy and names["cupyx"] is gpulab.cupyx
    assert names["Device"] is gpulab.cupy.cuda.Device and names["rsqrt"] is gpulab.cupyx.rsqrt
    pytest.importorskip("triton")
    names = learners("import triton\nimport triton.language as tl")
    assert names["triton"] is gpulab.triton and names["tl"] is gpulab.triton.language


def test_a_package_in_a_face_is_imported_by_its_name_alone() -> None:
    pytest.importorskip("triton")
    words = learners("from triton.experimental import gluon\nimport triton.profiler as proton")
    assert words["gluon"].__name__ == "gpulab.frontends.triton.experimental.gluon"
    assert words["proton"].__name__ == "triton.profiler"


def test_an_import_of_what_a_face_lacks_is_an_import_error() -> None:
    for wrong in ("from cupyx import scipy", "import cupy.nothing", "from numba.cuda import nothing"):
        with pytest.raises(ImportError, match=r"scipy|nothing"):
            learners(wrong)


def test_code_of_files_gets_what_it_asks_for() -> None:
    names: dict[str, Any] = {"__name__": "helpers", "__file__": "helpers.py"}
    exec("import numba\nfrom numba import cuda", names)
    assert names["cuda"] is sys.modules["numba.cuda"] and names["numba"] is sys.modules["numba"]
    script: dict[str, Any] = {"__name__": "__main__", "__file__": "script.py"}
    exec("from numba import cuda", script)
    assert script["cuda"] is sys.modules["numba.cuda"]


def test_in_a_notebook_it_works_as_soon_as_gpulab_is_imported() -> None:
    cells = [
        f"import numpy as np\nimport gpulab\nfrom numba import cuda\n{KERNEL.format(**PLAIN)}",
        "def late():\n    import cupy\n    return cupy.arange(3).sum().item()",
        "import json; print(json.dumps([found, late(), cuda.jit.__module__]))",
    ]
    session = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        f"for cell in {cells!r}: shell.run_cell(cell).raise_error()"
    )
    done = subprocess.run([sys.executable, "-c", session], capture_output=True, text=True, check=True)
    found, late, module = json.loads(done.stdout.splitlines()[-1])
    assert found == [1] * 32 and late == 3 and module.startswith("gpulab")


@pytest.mark.parametrize(
    ("statement", "face"),
    [
        ("import cutlass.cute as found", "cutlass"),
        ("from cutlass import cute as found", "cutlass"),
        ("import cuda.tile as found", "tile"),
        ("from cuda import tile as found", "tile"),
    ],
)
def test_a_real_package_is_tied_to_the_device_before_a_learner_gets_it(statement: str, face: str) -> None:
    code = (
        "import sys, gpulab\n"
        "names = {'__name__': '__main__'}\n"
        f"exec({statement!r}, names)\n"
        f"print(names['found'].__name__, 'gpulab.{face}' in sys.modules)"
    )
    pytest.importorskip("nvidia_cutlass_dsl" if face == "cutlass" else "cuda.tile")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["cutlass.cute" if face == "cutlass" else "cuda.tile", "True"]
