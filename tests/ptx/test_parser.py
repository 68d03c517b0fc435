"""The parser on files: real and hand-written PTX beside its blocks, bad PTX beside its message."""

from __future__ import annotations

import cProfile
from pathlib import Path

import pytest

from gpulab.simulator import ptx
from tests.ptx.make_samples import list_blocks

HERE = Path(__file__).parent
VALID = sorted((HERE / "valid").glob("*.ptx"))
INVALID = sorted((HERE / "invalid").glob("*.ptx"))


def parse_body(*lines: str) -> ptx.Function:
    """A kernel with these lines and registers enough."""
    text = ".version 8.0\n.target sm_80\n.global .u64 table[4];\n.entry k(.param .u64 out) {\n"
    text += ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\n"
    return ptx.parse(text + "\n".join(lines) + "\n}").functions["k"]


def read_operands(text: str) -> tuple[ptx.Operand, ...]:
    return parse_body(f"any {text};").blocks[0].instructions[0].operands


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_valid_file_has_the_blocks_beside_it(path: Path) -> None:
    assert list_blocks(ptx.parse(path.read_text())) == path.with_suffix(".blocks").read_text()


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_an_invalid_file_raises_the_message_beside_it(path: Path) -> None:
    with pytest.raises(ptx.PtxError) as caught:
        ptx.parse(path.read_text())
    assert f"{caught.value}\n" == path.with_suffix(".message").read_text()


def test_every_file_has_its_expected_result_and_every_result_its_file() -> None:
    assert {path.stem for path in VALID} == {path.stem for path in (HERE / "valid").glob("*.blocks")}
    assert {path.stem for path in INVALID} == {path.stem for path in (HERE / "invalid").glob("*.message")}


R1, R2 = ptx.Register("%r1"), ptx.Register("%r2")
OPERANDS = {
    "%r1": R1,
    "%tid.x": ptx.Special("%tid.x"),
    "%clock64": ptx.Special("%clock64"),
    "_": ptx.Register("_"),
    "WARP_SZ": ptx.Immediate(32),
    "-5": ptx.Immediate(-5),
    "0x1F": ptx.Immediate(31),
    "0xffffffffU": ptx.Immediate(0xFFFFFFFF),
    "017": ptx.Immediate(15),
    "0": ptx.Immediate(0),
    "0b101": ptx.Immediate(5),
    "0f3FC00000": ptx.Immediate(1.5, "f32", 0x3FC00000),
    "0FBFC00000": ptx.Immediate(-1.5, "f32", 0xBFC00000),
    "0d3FF8000000000000": ptx.Immediate(1.5, "f64", 0x3FF8000000000000),
    "1.5": ptx.Immediate(1.5, "f64", 0x3FF8000000000000),
    "table": ptx.Symbol("table"),
    "table+16": ptx.Symbol("table", 16),
    "[%r1]": ptx.Address(R1),
    "[%r1+4]": ptx.Address(R1, 4),
    "[%r1+-4]": ptx.Address(R1, -4),
    "[%r1-0x10]": ptx.Address(R1, -16),
    "[ %r1 + 4 ]": ptx.Address(R1, 4),
    "[4096]": ptx.Address(None, 4096),
    "[table+8]": ptx.Address(ptx.Symbol("table"), 8),
    "[%r1, {%r2, 3}]": ptx.Address(R1, 0, (ptx.Vector((R2, ptx.Immediate(3))),)),
    "{%r1, _, %r2}": ptx.Vector((R1, ptx.Register("_"), R2)),
    "{ %r1 }": ptx.Vector((R1,)),
    "(%r1, table)": ptx.Arguments((R1, ptx.Symbol("table"))),
    "()": ptx.Arguments(()),
    "%r1|%r2": ptx.Pair(R1, R2),
    "%r1 | _": ptx.Pair(R1, ptx.Register("_")),
    "!%r1": ptx.Negated(R1),
}


@pytest.mark.parametrize("text", OPERANDS)
def test_an_operand_is_read(text: str) -> None:
    assert read_operands(text) == (OPERANDS[text],)
    assert read_operands(f"{{%r2}} , {text},%r1") == (ptx.Vector((R2,)), OPERANDS[text], R1)


def test_two_literals_are_equal_where_their_bits_are() -> None:
    nan, again, zero, minus_zero = read_operands("0f7FC00000, 0f7FC00000, 0f00000000, 0f80000000")
    assert nan == again and hash(nan) == hash(again)
    assert zero != minus_zero


def test_a_guard_belongs_to_its_instruction() -> None:
    first, second = parse_body("@%p1 mov.u32 %r1, 0;", "@!%p2 mov.u32 %r1, 1;").blocks[0].instructions[:2]
    assert (first.guard, first.guard_negated) == (ptx.Register("%p1"), False)
    assert (second.guard, second.guard_negated) == (ptx.Register("%p2"), True)


def test_an_instruction_knows_its_line_in_the_text() -> None:
    lines = ["", "/* two", "lines */ mov.u32 %r1, 0; mov.u32 %r2, 0;", "call", "k,", "(%r1);", "ret;"]
    instructions = parse_body(*lines).blocks[0].instructions
    assert [each.line for each in instructions] == [8, 8, 9, 12]


def test_a_source_line_of_zero_leaves_the_line_before() -> None:
    body = parse_body(
        "neg;", ".loc 1 0 0", "neg;", ".loc 1 7 3", "neg;", ".loc 1 0 0", "neg;", ".loc 1 9 1", "neg;"
    )
    lines = [each.location and each.location.line for each in body.blocks[0].instructions]
    assert lines == [None, None, 7, 7, 9, 9]


def test_inline_assembly_stands_on_one_source_line_however_many_it_has_itself() -> None:
    lines = (".loc 1 5 3", "neg;", "// begin inline asm", ".loc 1 5 3", "neg;", ".loc 1 6 3", "neg; not;")
    more = ("// end inline asm", "// begin inline asm", "neg;", ".loc 1 7 3", "neg;", "// end inline asm")
    body = parse_body(*lines, *more, "abs;", ".loc 1 8 1", "ret;")
    found = [each.location and each.location.line for each in body.blocks[0].instructions]
    assert found == [5, 5, 5, 5, 5, 5, 5, 8]


def test_a_file_may_be_named_after_its_use() -> None:
    module = ptx.parse('.entry k() {\n.loc 3 5 1\nret;\n}\n.file 3 "/somewhere/a // b.py"')
    assert module.functions["k"].blocks[0].instructions[0].location == ptx.Location("/somewhere/a // b.py", 5)


def test_source_lines_do_not_leak_into_the_next_function() -> None:
    module = ptx.parse(".entry a() {\n.loc 1 5 1\nret;\n}\n.entry b() { ret; }")
    assert module.functions["b"].blocks[0].instructions[0].location is None


def test_only_registers_in_use_are_kept() -> None:
    registers = (
        ptx.parse(".entry k() { .reg .b64 %rd<999999999>; mov.b64 %rd7, 1; }").functions["k"].registers
    )
    assert registers == {"%rd7": "b64"}


def test_a_range_whose_prefix_ends_in_a_digit_is_not_mixed_up() -> None:
    text = ".entry k() { .reg .b32 %r<4>; .reg .b64 %r1<3>; mov %r3, %r12; }"
    assert ptx.parse(text).functions["k"].registers == {"%r3": "b32", "%r12": "b64"}


def test_names_declared_again_in_inner_braces_become_unique() -> None:
    call = "{ .reg .b32 %r1; .param .b64 param0; st.param.b64 [param0], %r1; call k, (param0); }"
    function = parse_body(call, call, "mov.u32 %r1, 0;")
    names = [variable.name for variable in function.variables]
    assert names == ["param0", "param0$2"]
    assert all(variable.space == "param" for variable in function.variables)
    stores = [each for each in function.blocks[0].instructions if each.opcode == "st.param.b64"]
    assert [store.operands[0] for store in stores] == [ptx.Address(ptx.Symbol(name)) for name in names]
    assert len({name for name in function.registers if name.startswith("%r1")}) == 3


def test_a_label_in_inner_braces_hides_the_one_outside() -> None:
    function = parse_body("again:", "{ bra again; again: bra again; }", "bra again;")
    outer, inner = function.blocks[0].label, function.blocks[1].label
    assert outer == "again" and inner.startswith("again$")
    assert [block.successors for block in function.blocks] == [(1,), (1,), (0,)]


def test_a_label_that_no_branch_names_splits_nothing() -> None:
    assert len(parse_body("a:", "neg;", "b:", "neg;", "c:", "ret;").blocks) == 1


def test_two_labels_at_one_place_are_one_block() -> None:
    function = parse_body("bra b;", "a: b: neg;", "bra a;")
    assert [block.label for block in function.blocks] == ["", "a"]
    assert function.blocks[0].instructions[-1].operands == (ptx.Symbol("a"),)


def test_a_guarded_jump_falls_through_and_an_unguarded_one_does_not() -> None:
    lines = [
        "@%p1 bra end;",
        "@%p1 ret;",
        "@!%p1 exit;",
        "@%p2 trap;",
        "bra end;",
        "neg;",
        "end: ret;",
        "neg;",
    ]
    successors = [block.successors for block in parse_body(*lines).blocks]
    assert successors == [(6, 1), (2,), (3,), (4,), (6,), (6,), (), ()]


def test_a_call_does_not_end_a_block() -> None:
    assert len(parse_body("call k, (0);", "call.uni k, (0);", "ret;").blocks) == 1


@pytest.mark.parametrize(
    ("lines", "added"), [(["neg;"], 1), (["@%p1 ret;"], 1), (["ret;"], 0), (["a: bra a;"], 0)]
)
def test_a_function_that_falls_off_its_end_returns(lines: list[str], added: int) -> None:
    instructions = [each for block in parse_body(*lines).blocks for each in block.instructions]
    assert len(instructions) == len(lines) + added
    assert not added or instructions[-1].opcode == "ret"


def test_a_branch_list_gives_the_successors_in_its_order() -> None:
    function = parse_body("t: .branchtargets c, b, b;", "brx.idx %r1, t;", "b: neg;", "c: ret;")
    assert function.blocks[0].successors == (2, 1, 1)
    assert function.branch_targets == {"t": ("c", "b", "b")}


def test_the_alignment_of_a_pointer_parameter_is_its_own() -> None:
    declared = ".param .u64 .ptr .global .align 16 a, .param .align 8 .b8 b[24], .param .v2 .f32 c"
    a, b, c = ptx.parse(f".entry k({declared}) {{ ret; }}").functions["k"].parameters
    assert (a.align, a.count, a.is_array) == (8, 1, False)
    assert (b.align, b.count, b.is_array) == (8, 24, True)
    assert (c.align, c.count, c.type) == (8, 2, "f32")


INITIALISERS = {
    ".global .u32 x = 258;": bytes([2, 1, 0, 0]),
    ".global .s8 x = -1;": b"\xff",
    ".global .b8 x[] = {1, 0x2, 03};": bytes([1, 2, 3]),
    ".global .b8 x[2][3] = {{1}, {2, 3}};": bytes([1, 0, 0, 2, 3, 0]),
    ".global .f32 x[2] = {0f3F800000, 1.0};": bytes.fromhex("0000803f0000803f"),
    ".global .f32 x = 2;": bytes.fromhex("00000040"),
    ".global .f64 x = 0f3F800000;": bytes.fromhex("000000000000f03f"),
    ".global .b16 x = 0x3C00;": bytes.fromhex("003c"),
    ".global .v2 .u8 x[2] = {{1, 2}, {3, 4}};": bytes([1, 2, 3, 4]),
}


@pytest.mark.parametrize("text", INITIALISERS)
def test_an_initialiser_gives_bytes(text: str) -> None:
    assert ptx.parse(text).variables["x"].initial == INITIALISERS[text]


def test_an_address_in_an_initialiser_is_kept_as_a_symbol() -> None:
    masks = ", ".join(f"0x{0xFF << 8 * byte:X}(y)" for byte in range(8))
    text = ".global .b8 y[8]; .global .u64 x[2] = {y, generic(y)+4};"
    variables = ptx.parse(f"{text} .global .b8 z[16] = {{{'0, ' * 8}{masks}}};").variables
    assert variables["x"].pointers == ((0, ptx.Symbol("y")), (8, ptx.Symbol("y", 4)))
    assert variables["z"].pointers == ((8, ptx.Symbol("y")),)
    assert variables["z"].initial == bytes(16)


def test_an_extern_variable_gives_way_to_its_definition() -> None:
    variables = ptx.parse(".extern .global .u32 x; .global .u32 x = 1; .extern .shared .b8 y[];").variables
    assert variables["x"].initial == bytes([1, 0, 0, 0])
    assert variables["y"].extern and variables["y"].count == 0 and variables["y"].is_array


def test_a_function_keeps_the_numbers_of_its_directives() -> None:
    function = ptx.parse(".entry k() .maxntid 128, 1, 1 .minnctapersm 2 .noreturn { }").functions["k"]
    assert function.directives == {"maxntid": (128, 1, 1), "minnctapersm": (2,), "noreturn": ()}


def test_the_entries_are_the_kernels_in_the_order_of_the_text() -> None:
    assert ptx.parse(".entry b() {} .func f() {} .entry a() {}").entries == ("b", "a")


def test_twice_the_lines_take_twice_the_work() -> None:
    """Counted in calls of Python functions, which do not hang on how busy the machine is."""

    def calls(n: int) -> int:
        lines = []
        for i in range(n):
            lines += [f".loc 1 {i + 1} 0", f"fma.rn.f32 %f{i}, %f{i + 1}, 0f3F800000, %f{i + 2};"]
        text = ".entry k() {\n.reg .f32 %f<9999>;\n" + "\n".join(lines) + "\nret;\n}"
        profile = cProfile.Profile(builtins=False)
        profile.runcall(ptx.parse, text)
        return sum(entry.callcount for entry in profile.getstats())

    small, large = calls(250), calls(2500)
    assert large < 10 * small
    assert large < 12 * 5000


INTERMEDIATE = """
.nv_intermediate_source_section {
  .code_block {
    .ir_name: "tile ir"
    .sourceFileName: 2
    .source_begin
entry @k(%arg0: tile<ptr<f32>>) optimization_hints=<default = {}> { if (x) { yield } // .entry
.source_end
  }
}
"""


def test_places_and_text_of_what_was_compiled_on_the_way_are_passed_over() -> None:
    """cuTile writes both: the learner's places stay, and the text may have braces that do not match."""
    text = (
        ".version 9.5\n.target sm_80\n.entry k() {\n.reg .b32 %r<9>;\n.loc 1 7 0\n.loc_intermediate 2 21 4\n"
    )
    text += 'neg.s32 %r1, %r2;\n.loc_intermediate 2 22 4\n}\n.file 1 "cell.py"\n.file 2 "./0f"' + INTERMEDIATE
    module = ptx.parse(text)
    first = module.functions["k"].blocks[0].instructions[0]
    assert (first.location.file, first.location.line) == ("cell.py", 7)


def test_a_section_of_intermediate_source_without_an_end_is_a_message() -> None:
    with pytest.raises(ptx.PtxError, match=r"expected blocks of code that end with `\.source_end`"):
        ptx.parse(".version 9.5\n.target sm_80\n.nv_intermediate_source_section { .code_block {")
