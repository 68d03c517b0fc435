"""Pairs in CUDA C++ for one newer GPU, whose kernels are in the files of one folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gpulab import cupy as cp

from ..pairs import Pair, marked_lines
from .in_cuda_c import Raw

Arguments = Callable[[], tuple[Any, ...]]
HERE = Path(__file__).parent


@cache
def _text(path: Path) -> str:
    return path.read_text()


def _lines(path: Path, name: str) -> tuple[int, ...]:
    """The marked lines of one kernel."""
    text = _text(path)
    start = text.index(f" {name}(")
    body = text[start : text.index("\n}", start)]
    return marked_lines(body, text.count("\n", 0, start) + 1)


class RawOn(Raw):
    """A kernel of one of these files."""

    def __init__(self, path: Path, name: str, mended: bool, gpu: str):
        options = ("-DMENDED",) if mended else ()
        self.kernel, self.gpu = cp.RawKernel(_text(path), name, options), gpu


class Folder:
    """The pairs of one folder, for one GPU."""

    def __init__(self, name: str, gpu: str):
        self.path, self.gpu = HERE / name, gpu

    def pair(
        self,
        name: str,
        kind: str,
        arguments: Arguments,
        says: str = "",
        *,
        file: str,
        grid: int = 1,
        block: int = 64,
        shared: int = 0,
    ) -> Pair:
        """The pair of the kernel `name`; see `Pair`."""

        def given() -> tuple[Any, ...]:
            return tuple(cp.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments())

        def make(mended: bool) -> Raw:
            return RawOn(self.path / file, name, mended, self.gpu)

        lines = _lines(self.path / file, name)
        return Pair(name.replace("_", " "), kind, says, make, grid, block, given, shared, lines, "CUDA C")

    def kernels(self) -> set[str]:
        """All kernels that the files hold."""
        return {
            name.replace("_", " ")
            for file in self.path.glob("*.cu")
            for name in re.findall(
                r"__global__ void (?:__cluster_dims__\([^)]*\) )?(\w+)\(", file.read_text()
            )
        }
