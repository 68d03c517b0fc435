"""What is printed reads back as an equal module."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpulab.simulator import ptx

VALID = sorted((Path(__file__).parent / "valid").glob("*.ptx"))


def without_line_numbers(module: ptx.Module) -> ptx.Module:
    return replace(
        module,
        functions={
            name: replace(function, blocks=tuple(_without_lines(block) for block in function.blocks))
            for name, function in module.functions.items()
        },
    )


def _without_lines(block: ptx.BasicBlock) -> ptx.BasicBlock:
    return replace(block, instructions=tuple(replace(each, line=0) for each in block.instructions))


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_printed_module_reads_back_as_an_equal_one(path: Path) -> None:
    module = ptx.parse(path.read_text())
    again = ptx.parse(ptx.print_module(module))
    assert without_line_numbers(again) == without_line_numbers(module)
    assert ptx.print_module(again) == ptx.print_module(module)


def test_a_module_is_printed_as_one_would_write_it() -> None:
    text = """\
.version 8.0
.target sm_80
.address_size 64
.file 1 "lab.py"

.extern .func (.param .b32 result) vprintf(
	.param .b64 format,
	.param .b64 values
);
.global .align 8 .b8 text[4] = {104, 105};
.extern .shared .align 16 .b8 tile[];
.global .u64 place = generic(text)+1;

.visible .entry kernel(
	.param .u64 out,
	.param .align 8 .b8 pair[16]
)
.maxntid 128, 1, 1
{
	.reg .b64 %rd<3>;
	.reg .pred %p<2>;
	.reg .f32 %f<4>;
	.reg .b32 sum;
	.param .b32 retval0;
	.loc 1 7 0
	ld.param.u64 %rd1, [pair+8];
again:
	@!%p1 bra done;
	.loc 1 8 0
	ld.global.v2.f32 {%f1, _}, [%rd1+-8];
	setp.lt.and.f32 %p1|_, %f1, 0f3F800000, !%p1;
	call.uni (retval0), vprintf, (text, 0);
	ld.param.b32 sum, [retval0];
	add.f32 %f3, %f1, 0dBFF0000000000000;
	mov.u64 %rd2, tile+4;
	bra.uni again;
done:
	ret;
}
"""
    assert ptx.print_module(ptx.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "@!%p1 ld.global.f32 %f1, [%rd4+-8]",
        "ret",
        "bar.sync 0",
        "mma.sync {%f1, %f2}, {%f3}, {%f4}, {%f1, %f2}",
        "tex.2d {%f1, _}, [%rd1, {%f2, %f3}]",
        "call (%f1), %rd1, (), %f2",
        "shfl.sync.idx.b32 %f1|%p1, %f2, 31, -1",
        "mov.u32 %f1, %tid.x",
    ],
)
def test_an_instruction_is_printed_as_it_was_read(text: str) -> None:
    registers = ".reg .pred %p<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>;"
    function = ptx.parse(f".entry k() {{ {registers} {text}; }}").functions["k"]
    assert ptx.print_instruction(function.blocks[0].instructions[0]) == text
