"""What print() in a kernel writes: C's formats, in the order of blocks and threads."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from gpulab.simulator import simt
from gpulab.simulator.simt.printing import arguments_of, render, unpack_arguments

from .launching import kernel, launch

# format, struct codes of the arguments, arguments, what C's printf makes of them
FORMATS = [
    ("%d", "i", [-5], "-5"),
    ("%i|%u", "iI", [-5, 2**32 - 1], "-5|4294967295"),
    ("%5d|%-5d|%05d|%+d", "iiii", [42, 42, 42, 42], "   42|42   |00042|+42"),
    ("%x %X %#x %o", "IIII", [255, 255, 255, 8], "ff FF 0xff 10"),
    ("%lld %llu %ld", "qQq", [-(2**40), 2**63, -1], f"{-(2**40)} {2**63} -1"),
    ("%f %.2f %8.3f|", "ddd", [1.5, 2.345, -3.14159], "1.500000 2.35 " + "  -3.142|"),
    ("%e %.1E %g %G", "dddd", [12345.678, 0.00012, 1e-7, 1e20], "1.234568e+04 1.2E-04 1e-07 1E+20"),
    ("%f %f", "dd", [math.inf, math.nan], "inf nan"),
    ("%c%c", "II", [72, 105], "Hi"),
    ("100%% of %d", "i", [3], "100% of 3"),
    ("%d %f %d %lld", "idiq", [1, 2.0, 3, 4], "1 2.000000 3 4"),
    ("no arguments", "", [], "no arguments"),
    ("%zu", "Q", [7], "7"),
    ("%hhd %hd", "ii", [5, 6], "5 6"),
]


def packed(codes: str, values: list) -> bytes:
    """Arguments one after the other, each at a multiple of its size."""
    buffer = b""
    for code, value in zip(codes, values, strict=True):
        buffer += bytes(-len(buffer) % struct.calcsize(code)) + struct.pack(f"<{code}", value)
    return buffer


@pytest.mark.parametrize(("form", "codes", "values", "expected"), FORMATS, ids=[f[0] for f in FORMATS])
def test_formats_are_those_of_c(form, codes, values, expected):
    assert [code for code, _ in arguments_of(form)] == list(codes)
    assert render(form, unpack_arguments(form, packed(codes, values))) == expected


def text_variable(name: str, text: str) -> str:
    octets = ", ".join(str(b) for b in text.encode() + b"\0")
    return f".global .align 1 .b8 {name}[{len(text.encode()) + 1}] = {{{octets}}};"


def printing(form: str, stores: str, before: str = "", after: str = "") -> str:
    """A kernel that calls vprintf once; `stores` fill the arguments at [%rd1]."""
    outside = text_variable("form", form) + text_variable("word", "wörd")
    outside += ".extern .func (.param .b32 r) vprintf(.param .b64 form, .param .b64 arguments);"
    body = f"""
        {before}
        mov.u64 %rd1, buffer;
        {stores}
        cvta.local.u64 %rd2, %rd1;
        mov.u64 %rd3, form;
        cvta.global.u64 %rd3, %rd3;
        {{ .param .b64 a; .param .b64 b; .param .b32 c;
        st.param.b64 [a], %rd3; st.param.b64 [b], %rd2;
        call.uni (c), vprintf, (a, b);
        ld.param.b32 %r9, [c]; }}
        {after}
    """
    return kernel(body, outside=outside, declarations=".local .align 8 .b8 buffer[32];")


def printed(text: str, grid: int = 1, block: int = 1, **options) -> str:
    pieces: list[str] = []
    launch(text, {"out": np.zeros(1, np.int32)}, grid, block, write=pieces.append, **options)
    return "".join(pieces)


def test_every_thread_prints_its_own_line_in_order():
    stores = "mov.u32 %r1, %ctaid.x; st.local.u32 [%rd1], %r1; st.local.u32 [%rd1+4], %tid;"
    lines = printed(printing("block %d thread %d\n", stores), 2, 40).splitlines()
    assert lines == [f"block {b} thread {t}" for b in range(2) for t in range(40)]


def test_only_the_lanes_of_the_branch_print():
    stores = "st.local.u32 [%rd1], %tid;"
    text = printing("%d;", stores, "rem.u32 %r1, %tid, 10; setp.ne.u32 %p1, %r1, 3; @%p1 bra END;", "END:")
    assert printed(text, 1, 32) == "3;13;23;"


def test_numbers_of_all_sizes_and_text():
    stores = """
        st.local.u32 [%rd1], -7;
        mov.f64 %fd1, 0d3FF8000000000000;
        st.local.f64 [%rd1+8], %fd1;
        mov.u64 %rd5, word; cvta.global.u64 %rd5, %rd5;
        st.local.u64 [%rd1+16], %rd5;
    """
    assert printed(printing("%d %f %s\n", stores)) == "-7 1.500000 wörd\n"


def test_without_a_listener_it_goes_to_standard_output(capsys):
    launch(printing("hello %d\n", "st.local.u32 [%rd1], 1;"), {"out": np.zeros(1, np.int32)}, 1, 2)
    assert capsys.readouterr().out == "hello 1\nhello 1\n"


def test_what_was_printed_before_a_fault_is_seen():
    pieces: list[str] = []
    text = printing("before\n", "", after="trap;")
    with pytest.raises(simt.Trap):
        launch(text, {"out": np.zeros(1, np.int32)}, 1, 1, write=pieces.append)
    assert pieces == ["before\n"]
