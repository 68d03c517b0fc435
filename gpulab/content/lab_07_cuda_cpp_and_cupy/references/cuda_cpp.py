"""Expected results of the exercises of lab 07, part A."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes
from gpulab.content.lab_07_cuda_cpp_and_cupy.cuda_cpp import STEP

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]

LOAD = re.compile(r"\bld(?:\.\w+)*?\.global(?:\.\w+)*?(?:\.v(\d))?\.[bsuf](\d+)\b")
ENTRY = re.compile(r"_(\d+)(\d)([af]?)$")
FUSED = re.compile(r"\bfma\.")


def invert(inputs: Arrays, sizes: Sizes) -> Expected:
    out, cols = inputs["out"].copy(), int(sizes["cols"])
    out[:, :cols] = 255 - inputs["image"][:, :cols]
    return {"out": out}


def scale(inputs: Arrays, sizes: Sizes) -> Expected:
    dtype = np.dtype(str(sizes["dtype"]))
    factor = dtype.type(3 if dtype.kind == "i" else 0.7)
    return {"x": inputs["x"].astype(dtype) * factor}  # rounded once, in the array's own type


def copy4(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"b": inputs["a"]}


@usual_slips(
    (
        lambda ptx: mix(ptx) | {"fused": len(re.findall(r"\b(?:fma|mad)\.", ptx))},
        "This counts `mad` as well, which multiplies and adds integers. Count only `fma`.",
    ),
)
def mix(ptx: str) -> dict[str, int]:
    loads = [(int(width or 1), int(bits)) for width, bits in LOAD.findall(ptx)]
    return {
        "loads": len(loads),
        "bytes": sum(width * bits // 8 for width, bits in loads),
        "fused": len(FUSED.findall(ptx)),
    }


@usual_slips(
    (
        lambda binary, gpu: way([entry.rstrip("af") for entry in binary], gpu),
        "This ignores the letter at the end: `a` runs on exactly that GPU, and `f` on its family.",
    ),
)
def way(binary: list[str], gpu: str) -> str:
    there = [(entry.partition("_")[0], *ENTRY.findall(entry)[0]) for entry in binary]
    major, _, minor = gpu.partition(".")

    def fits(kind: str, x: str, y: str, suffix: str) -> bool:
        if suffix == "a":
            return (x, y) == (major, minor)
        later = int(minor) >= int(y)
        if kind == "sm" or suffix == "f":
            return x == major and later
        return int(major) > int(x) or (x == major and later)

    kinds = {kind for kind, *rest in there if fits(kind, *rest)}
    return "machine code" if "sm" in kinds else "PTX" if kinds else "nothing"


def two_product(inputs: Arrays, sizes: Sizes) -> Expected:
    a, b = inputs["a"], inputs["b"]
    p = a * b
    exact = (Fraction(x) * Fraction(y) - Fraction(z) for x, y, z in zip(a, b, p, strict=True))
    return {"p": p, "e": np.array([float(error) for error in exact])}


def shuffle(inputs: Arrays, sizes: Sizes) -> Expected:
    n, step = int(sizes["n"]), int(sizes.get("step", STEP))
    return {"out": inputs["a"][np.arange(n, dtype=np.int64) * step % n]}


REFERENCES: dict[str, Callable[..., Any]] = {
    "cpp.invert": invert,
    "cpp.scale": scale,
    "cpp.copy4": copy4,
    "cpp.mix": mix,
    "cpp.way": way,
    "cpp.two_product": two_product,
    "cpp.shuffle": shuffle,
}
