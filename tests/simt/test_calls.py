"""Device functions that stay functions: parameters, results, branches and returns of their own."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.simulator import ptx, simt

from .launching import SCHEDULES, element, kernel, launch

both = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)

MIX = """
.func (.param .b32 result) mix(.param .b32 a, .param .b64 b, .param .b32 c, .param .b16 d) {
    .reg .f32 %f<4>; .reg .f64 %fd<4>; .reg .b32 %r<4>; .reg .b16 %h<2>;
    ld.param.f32 %f1, [a];
    ld.param.f64 %fd1, [b];
    ld.param.u32 %r1, [c];
    ld.param.u16 %h1, [d];
    cvt.rzi.u32.f32 %r2, %f1;
    cvt.rzi.u32.f64 %r3, %fd1;
    add.u32 %r1, %r1, %r2;
    add.u32 %r1, %r1, %r3;
    cvt.u32.u16 %r2, %h1;
    add.u32 %r1, %r1, %r2;
    st.param.b32 [result], %r1;
    ret;
}
"""

COLLATZ = """
.func (.param .b32 steps) collatz(.param .b32 start) {
    .reg .b32 %r<8>; .reg .pred %p<4>;
    ld.param.u32 %r1, [start];
    mov.u32 %r2, 0;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra NONE;
AGAIN:
    setp.eq.u32 %p2, %r1, 1;
    @%p2 bra DONE;
    add.u32 %r2, %r2, 1;
    and.b32 %r3, %r1, 1;
    setp.eq.u32 %p3, %r3, 0;
    @%p3 bra HALF;
    mad.lo.u32 %r1, %r1, 3, 1;
    bra AGAIN;
HALF:
    shr.u32 %r1, %r1, 1;
    bra AGAIN;
NONE:
    st.param.b32 [steps], 12345;
    ret;
DONE:
    st.param.b32 [steps], %r2;
    ret;
}
"""


def call(target: str, *arguments: tuple[str, str], into: str = "%r1", number: int = 0) -> str:
    """A call as compilers write it: ``{ .param …; st.param …; call …; ld.param … }``."""
    names = [f"p{number}_{i}" for i in range(len(arguments))]
    lines = [f".param .b{type_[1:]} {n};" for n, (type_, _) in zip(names, arguments, strict=True)]
    lines += [f"st.param.{type_} [{n}], {value};" for n, (type_, value) in zip(names, arguments, strict=True)]
    lines += [f".param .b32 back{number};", f"call.uni (back{number}), {target}, ({', '.join(names)});"]
    return "{" + "\n".join([*lines, f"ld.param.b32 {into}, [back{number}];"]) + "}"


def run(body: str, outside: str, schedule=simt.LOCKSTEP, block: int = 64, **arrays) -> np.ndarray:
    text = kernel(f"{body} {element('out')} st.global.u32 [%rd31], %r1;", outside=outside)
    return launch(text, {"out": np.zeros(2 * block, np.uint32)}, 2, block, schedule=schedule)["out"]


def steps(n: int) -> int:
    count = 0
    while n > 1:
        n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
    return count


def test_parameters_of_several_types_arrive():
    body = f"""
        cvt.rn.f32.u32 %f1, %tid;
        cvt.rn.f64.u32 %fd1, %at;
        mul.f64 %fd1, %fd1, 0d408F400000000000;
        cvt.u16.u32 %h1, %tid;
        {call("mix", ("f32", "%f1"), ("f64", "%fd1"), ("b32", "1000000"), ("b16", "%h1"))}
    """
    at = np.arange(128)
    np.testing.assert_array_equal(run(body, MIX), 1_000_000 + 1000 * at + 2 * (at % 64))


@both
def test_each_lane_loops_and_returns_on_its_own(schedule):
    """The steps of Collatz's sequence; zero returns early."""
    found = run(call("collatz", ("b32", "%at")), COLLATZ, schedule)
    np.testing.assert_array_equal(found, [12345] + [steps(n) for n in range(1, 128)])


@both
def test_some_lanes_call_and_others_do_not(schedule):
    body = f"""
        mov.u32 %r1, 99;
        and.b32 %r2, %tid, 3;
        setp.ne.u32 %p1, %r2, 0;
        @%p1 bra END;
        {call("collatz", ("b32", "%at"))}
    END:
        add.u32 %r1, %r1, %tid;
    """
    at = np.arange(128)
    expected = [(steps(n) if n else 12345) if n % 4 == 0 else 99 for n in at] + at % 64
    np.testing.assert_array_equal(run(body, COLLATZ, schedule), expected)


@both
def test_functions_call_functions_and_the_same_one_twice(schedule):
    """sum(a, b) = collatz(a) + collatz(b); the kernel calls it with its own number and the next."""
    both_steps = f"""
    .func (.param .b32 total) sum(.param .b32 a, .param .b32 b) {{
        .reg .b32 %r<8>;
        ld.param.u32 %r1, [a];
        ld.param.u32 %r2, [b];
        {call("collatz", ("b32", "%r1"), into="%r3", number=1)}
        {call("collatz", ("b32", "%r2"), into="%r4", number=2)}
        add.u32 %r5, %r3, %r4;
        st.param.b32 [total], %r5;
        ret;
    }}
    """
    body = f"add.u32 %r2, %at, 1; add.u32 %r3, %at, 2; {call('sum', ('b32', '%r2'), ('b32', '%r3'))}"
    expected = [steps(n + 1) + steps(n + 2) for n in range(128)]
    np.testing.assert_array_equal(run(body, COLLATZ + both_steps, schedule), expected)


def test_a_function_without_a_result_writes_through_a_pointer():
    outside = """
    .func put(.param .b64 where, .param .b32 what) {
        .reg .b64 %rd<2>; .reg .b32 %r<3>; .reg .pred %p<2>;
        ld.param.u64 %rd1, [where];
        ld.param.u32 %r1, [what];
        setp.gt.u32 %p1, %r1, 20;
        @%p1 ret;
        st.global.u32 [%rd1], %r1;
        ret;
    }
    """
    body = f"""
        {element("out")}
        {{ .param .b64 a; .param .b32 b; st.param.b64 [a], %rd31; st.param.b32 [b], %tid;
        call put, (a, b); }}
    """
    found = launch(kernel(body, outside=outside), {"out": np.full(32, 5, np.uint32)})["out"]
    np.testing.assert_array_equal(found, np.where(np.arange(32) > 20, 5, np.arange(32)))


def test_local_memory_of_a_function_is_apart_from_the_kernels():
    outside = """
    .func (.param .b32 back) last(.param .b32 a) {
        .reg .b64 %rd<2>; .reg .b32 %r<3>;
        .local .align 4 .b8 own[8];
        mov.u64 %rd1, own;
        ld.param.u32 %r1, [a];
        st.local.u32 [%rd1], %r1;
        st.local.u32 [%rd1+4], 7;
        ld.local.u32 %r2, [%rd1];
        st.param.b32 [back], %r2;
        ret;
    }
    """
    body = f"""
        .local .align 4 .b8 own[8];
        mov.u64 %rd1, own;
        st.local.u32 [%rd1], 1; st.local.u32 [%rd1+4], 2;
        {call("last", ("b32", "%at"))}
        ld.local.u32 %r2, [%rd1]; ld.local.u32 %r3, [%rd1+4];
        mad.lo.u32 %r2, %r2, 10, %r3;
        mad.lo.u32 %r1, %r1, 100, %r2;
    """
    np.testing.assert_array_equal(run(body, outside), np.arange(128) * 100 + 12)


@both
def test_a_function_may_have_a_barrier(schedule):
    """It turns a tile of the block around."""
    outside = """
    .shared .align 4 .b8 tile[256];
    .func (.param .b32 back) mirror(.param .b32 a, .param .b32 i) {
        .reg .b64 %rd<4>; .reg .b32 %r<4>;
        ld.param.u32 %r1, [a]; ld.param.u32 %r2, [i];
        mov.u64 %rd1, tile;
        mad.wide.u32 %rd2, %r2, 4, %rd1;
        st.shared.u32 [%rd2], %r1;
        bar.sync 0;
        sub.u32 %r2, 63, %r2;
        mad.wide.u32 %rd2, %r2, 4, %rd1;
        ld.shared.u32 %r3, [%rd2];
        st.param.b32 [back], %r3;
        ret;
    }
    """
    found = run(call("mirror", ("b32", "%at"), ("b32", "%tid")), outside, schedule).reshape(2, 64)
    np.testing.assert_array_equal(found, np.arange(128).reshape(2, 64)[:, ::-1])


def refusal(body: str, outside: str) -> str:
    with pytest.raises(simt.UnsupportedInstruction) as refused:
        simt.load(ptx.parse(kernel(body, outside=outside)))
    return str(refused.value)


def test_a_refusal_calls_the_kernel_as_the_learner_does():
    outside = ".extern .func (.param .b32 r) far(.param .b32 a);"
    module = ptx.parse(kernel(call("far", ("b32", "%tid")), outside=outside))
    with pytest.raises(simt.UnsupportedInstruction, match=r"^steps — "):
        simt.load(module, next(n for n, f in module.functions.items() if f.entry), "steps")


def test_a_function_that_is_only_declared_is_refused():
    message = refusal(call("far", ("b32", "%tid")), ".extern .func (.param .b32 r) far(.param .b32 a);")
    assert message.endswith("This device function has no PTX of its own.")
