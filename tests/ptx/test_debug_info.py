"""The variables that compilers describe behind their PTX are found, with their types and places."""

from __future__ import annotations

from gpulab.simulator.compile import cuda_c_module
from gpulab.simulator.ptx import Register, parse, source_variables

SOURCE = r"""
struct Point { float x; float y; };
extern "C" __global__ void k(float* out, int n, long long m)
{
    const unsigned short tiny = n;
    Point p = {1.0f, (float)n};
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += i * p.y;
    float many[64];
    many[n] = sum;
    out[0] = sum + tiny + m + many[n];
}
"""


def variables(source: str = SOURCE):
    ptx = cuda_c_module(source, variables=True).ptx
    found = source_variables(ptx)
    return ptx, {v.name: v for v in found["k"]}


def test_numbers_and_small_structures_have_their_types():
    _, found = variables()
    assert [p.dtype for p in found["n"].parts] == ["i4"]
    assert [p.dtype for p in found["m"].parts] == ["i8"]
    assert [p.dtype for p in found["tiny"].parts] == ["u2"]
    assert [p.dtype for p in found["sum"].parts] == ["f8"]
    assert [(p.dtype, p.offset) for p in found["p"].parts] == [("f4", 0), ("f4", 4)]


def test_pointers_and_large_arrays_are_left_out():
    _, found = variables()
    assert "out" not in found
    assert "many" not in found


def test_parameters_are_told_from_variables_and_have_their_line():
    _, found = variables()
    assert found["n"].is_parameter
    assert not found["sum"].is_parameter
    lines = SOURCE.splitlines()
    for name, begins in {"tiny": "    const", "sum": "    double", "i": "    for"}.items():
        assert lines[found[name].line - 1].startswith(begins)


def test_registers_are_those_of_the_function():
    ptx, found = variables()
    declared = parse(ptx).functions["k"].registers
    places = [where for v in found.values() for _, where in v.moves] + [v.place for v in found.values()]
    named = [place.name for place in places if isinstance(place, Register)]
    assert named
    assert set(named) <= set(declared)


def test_a_variable_of_an_inner_block_is_in_scope_there_only():
    _, found = variables()
    assert found["i"].first > found["sum"].first
    assert not found["i"].is_in_scope(found["i"].first - 1)


def test_ptx_without_debug_information_has_no_variables():
    assert source_variables(cuda_c_module(SOURCE).ptx) == {}
