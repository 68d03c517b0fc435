"""What is read from the text of kernels."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.frontends.cupy.c_types import canonical, fits
from gpulab.frontends.cupy.cuda_text import signatures

PARAMETERS = {
    "const float* x": ("float*", "x"),
    "const float * __restrict__ x": ("float*", "x"),
    "float* const x": ("float*", "x"),
    "float x[]": ("float*", "x"),
    "float x[16]": ("float*", "x"),
    "unsigned long long int *counts": ("unsigned long long int*", "counts"),
    "int n": ("int", "n"),
    "const struct Point p": ("Point", "p"),
    "complex<float>* z": ("complex<float>*", "z"),
    "cuda::std::array<int, 4> a": ("cuda::std::array<int, 4>", "a"),
    "float4 *v": ("float4*", "v"),
    "float": ("float", ""),
    "int n = 4": ("int", "n"),
}


@pytest.mark.parametrize("text", PARAMETERS)
def test_a_parameter_has_a_type_and_a_name(text: str) -> None:
    (parameter,) = signatures(f"__global__ void f({text}) {{}}")["f"].parameters
    assert (parameter.type, parameter.name) == PARAMETERS[text]


def test_all_kernels_are_found_whatever_stands_around_them() -> None:
    found = signatures(r"""
        // __global__ void commented(int n) {}
        /* __global__ void too(int n) {} */
        #define N 4
        extern "C" {
        __global__ void __launch_bounds__(256, 2) bounded(float* x, \
                                                          int n) { if (n) { x[0] = 1; } }
        }
        __device__ int helper(int n) { return n; }
        template <typename T, int N>
        __global__ void scale(T* x, T factor) {}
        static __global__ void plain() {}
        __launch_bounds__(64) __global__ void before(void) {}
        __global__ void declared(int a);
        __global__ void declared(int a) {}
    """)
    assert list(found) == ["bounded", "scale", "plain", "before", "declared"]
    assert str(found["bounded"]) == "(float* x, int n)"
    assert found["scale"].template == ("T", "N")
    assert str(found["scale"].instance("scale<double, 4>")) == "(double* x, double factor)"
    assert found["plain"].parameters == found["before"].parameters == ()


FITS = {
    "float": ("f4", "f8 i4 f2"),
    "int": ("i4 u4", "i8 f4 i2"),
    "long unsigned int": ("u8 i8", "u4 f8"),
    "unsigned char": ("u1 i1 ?", "u2 f4"),
    "bool": ("? u1", "i4"),
    "__half": ("f2 u2", "f4"),
    "__half2": ("f2", "f4"),
    "__nv_bfloat16": ("u2 i2", "f2 f4"),
    "float4": ("f4", "f8"),
    "float2": ("f4 c8", "f8 c16"),
    "cuDoubleComplex": ("c16", "c8 f8"),
    "complex<float>": ("c8", "c16 f4"),
    "int64_t": ("i8", "i4"),
    "size_t": ("u8 i8", "u4"),
}


@pytest.mark.parametrize("pointee", FITS)
def test_which_arrays_fit_a_pointer(pointee: str) -> None:
    fit = fits(pointee)
    assert fit is not None
    good, bad = (text.split() for text in FITS[pointee])
    assert [d for d in good if not fit(np.dtype(d))] == []
    assert [d for d in bad if fit(np.dtype(d))] == []


@pytest.mark.parametrize("pointee", ["void", "T", "Particle", "cuda::atomic<int>"])
def test_pointers_to_the_unknown_take_any_array(pointee: str) -> None:
    assert fits(pointee) is None


def test_integers_have_one_name() -> None:
    assert {canonical(t) for t in ("unsigned", "unsigned int", "int unsigned")} == {"unsigned int"}
    assert {canonical(t) for t in ("long long", "long long int", "signed long long")} == {"long long"}
