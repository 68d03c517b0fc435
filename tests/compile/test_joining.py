"""Several texts of PTX become one module, as the files of a program do in a linker."""

from __future__ import annotations

from gpulab.simulator import ptx
from gpulab.simulator.compile.joining import join
from gpulab.simulator.compile.ptxas import link

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
FIRST = f"""{HEADER}
.extern .func (.param .b32 result) twice
(
.param .b32 x
)
;
.global .align 1 .b8 $str[3] = {{111, 110, 0}};
.extern .global .align 8 .b8 table[8];
.extern .shared .align 4 .b8 room[];
.visible .global .align 4 .u32 total;

.visible .entry first(
.param .u64 out
)
{{
.reg .b64 %rd<4>;
.reg .b32 %r<4>;
ld.param.u64 %rd1, [out];
ld.global.u8 %r1, [$str];
{{
.param .b32 p;
.param .b32 q;
st.param.b32 [p+0], %r1;
call.uni (q), twice, (p);
ld.param.b32 %r2, [q+0];
}}
st.shared.b32 [room], %r2;
mov.u64 %rd2, table;
st.global.b32 [%rd1], %r2;
ret;
}}

.weak .entry both(
.param .u64 out
)
.maxntid 128, 1, 1
{{
{{
.reg .b32 %r<2>;
}}
ret;
}}
.file 1 "first.cu"
.section .debug_str
{{
$L__info_string0:
.b8 95,0
}}
"""
SECOND = f"""{HEADER}
.visible .func (.param .b32 result) twice
(
.param .b32 x
)
;
.visible .global .align 8 .u64 table[1] = {{twice}};
.global .align 1 .b8 $str[3] = {{116, 119, 0}};
.extern .shared .align 16 .b8 room[];
.extern .global .align 4 .u32 total;

.visible .func (.param .b32 result) twice(
.param .b32 x
)
{{
.reg .b32 %r<3>;
ld.param.b32 %r1, [x];
add.u32 %r2, %r1, %r1;
st.param.b32 [result+0], %r2;
ret;
}}
.weak .entry both(
.param .u64 out
)
.maxntid 128, 1, 1
{{
{{
.reg .b32 %r<2>;
}}
ret;
}}
.visible .entry second(
.param .u64 out
)
{{
.reg .b64 %rd<2>;
.reg .b32 %r<4>;
ld.global.u8 %r1, [$str];
ld.global.u32 %r2, [total];
st.shared.b32 [room], %r1;
ret;
}}
.file 1 "second.cu"
.section .debug_str
{{
$L__info_string0:
.b8 95,0
}}
"""


def test_what_one_text_declares_and_another_defines_is_there_once() -> None:
    module = ptx.parse(join(FIRST, [SECOND]))
    assert {name for name, each in module.functions.items() if not each.extern} == {
        "twice",
        "first",
        "both",
        "second",
    }
    assert not module.functions["twice"].extern and not module.variables["table"].extern
    assert sorted(module.files.values()) == ["first.cu", "second.cu"]


def test_literals_of_the_same_name_stay_apart() -> None:
    module = ptx.parse(join(FIRST, [SECOND]))
    texts = {v.initial for name, v in module.variables.items() if name.startswith("$str")}
    assert {bytes(text or b"")[:2] for text in texts} == {b"on", b"tw"}


def test_ptxas_accepts_the_module_whichever_text_comes_first() -> None:
    for texts in ((FIRST, SECOND), (SECOND, FIRST)):
        assert link(join(texts[0], [texts[1]]), (8, 0))[1]
