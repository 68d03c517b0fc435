"""numba.cuda's functions that compile without launching, for functions that use the face."""

from __future__ import annotations

from typing import Any

from gpulab.simulator import device as devices
from gpulab.simulator.compile import without_driver


def _compile(
    how: str, pyfunc: Any, sig: Any, cc: tuple[int, int] | None, options: dict[str, Any]
) -> tuple[Any, Any]:
    from numba import cuda

    target = cc or devices.current().cc
    with without_driver(getattr(pyfunc, "py_func", pyfunc), target) as copy:
        return getattr(cuda, how)(copy, sig, cc=target, **options)


def compile(pyfunc: Any, sig: Any, cc: Any = None, **options: Any) -> tuple[Any, Any]:
    """To PTX, or to LTO-IR with ``output="ltoir"``: (code, return type). By default a device function."""
    return _compile("compile", pyfunc, sig, cc, options)


def compile_ptx(pyfunc: Any, sig: Any, cc: Any = None, **options: Any) -> tuple[str, Any]:
    """Compile a kernel (or with ``device=True`` a device function) to PTX; (PTX, return type)."""
    return _compile("compile_ptx", pyfunc, sig, cc, options)


def compile_all(pyfunc: Any, sig: Any, cc: Any = None, **options: Any) -> tuple[list[Any], Any]:
    """Compile with all that a function depends on; (list of codes, return type)."""
    return _compile("compile_all", pyfunc, sig, cc, options)


def compile_for_current_device(pyfunc: Any, sig: Any, **options: Any) -> tuple[Any, Any]:
    """`compile` for the simulated GPU."""
    return compile(pyfunc, sig, **options)


def compile_ptx_for_current_device(pyfunc: Any, sig: Any, **options: Any) -> tuple[str, Any]:
    """`compile_ptx` for the simulated GPU."""
    return compile_ptx(pyfunc, sig, **options)
