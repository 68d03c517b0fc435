"""Liveness and post-dominators against slow references that follow every path."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator import ptx

REGISTERS = [f"%r{number}" for number in range(4)]
register = st.sampled_from(REGISTERS)
PLAIN = ["add {0}, {1}, {2};", "@%p1 mov {0}, {1};", "st.global.b32 [{0}], {1};", "mov {{{0}, _}}, {1};"]
ENDS = ["", "bra {0};", "@%p0 bra {0};", "ret;", "@!%p1 ret;", "brx.idx {1}, {2};"]


@st.composite
def functions(draw: st.DrawFn) -> ptx.Function:
    """A kernel of up to eight blocks that branch anywhere."""
    count = draw(st.integers(1, 8))
    label = st.integers(0, count - 1).map("L{}".format)
    lines = []
    for index in range(count):
        lines.append(f"L{index}:")
        for text in draw(st.lists(st.sampled_from(PLAIN), max_size=3)):
            lines.append(text.format(draw(register), draw(register), draw(register)))
        end = draw(
            st.sampled_from(["", "bra {0};", "@%p0 bra {0};", "ret;", "@!%p1 ret;", "brx.idx {1}, {2};"])
        )
        table = f"table{index}"
        if end.startswith("brx"):
            lines.append(f"{table}: .branchtargets {draw(label)}, {draw(label)};")
        lines.append(end.format(draw(label), draw(register), table))
    text = ".entry k() { .reg .b32 %r<4>; .reg .pred %p<2>;\n" + "\n".join(lines) + "\n}"
    return ptx.parse(text).functions["k"]


def is_read_before_written(function: ptx.Function, block: int, place: int, name: str) -> bool:
    """Follow all paths from one instruction."""
    seen, waiting = set(), [(block, place)]
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        block, place = here
        instructions = function.blocks[block].instructions
        if place == len(instructions):
            waiting += [(successor, 0) for successor in function.blocks[block].successors]
            continue
        if name in ptx.reads(instructions[place]):
            return True
        if instructions[place].guard is not None or name not in ptx.writes(instructions[place]):
            waiting.append((block, place + 1))
    return False


def live_at(function: ptx.Function, block: int, place: int) -> frozenset[str]:
    return frozenset(
        name for name in function.registers if is_read_before_written(function, block, place, name)
    )


@given(functions())
def test_a_register_is_live_where_a_path_reads_it_before_writing_it(function: ptx.Function) -> None:
    live = ptx.live_registers(function)
    for block in function.blocks:
        assert live[block.index] == live_at(function, block.index, 0)
        expected = [live_at(function, block.index, place) for place in range(len(block.instructions))]
        assert ptx.live_before(block, live) == tuple(expected)


@given(functions())
def test_paths_meet_at_the_first_block_that_none_can_avoid(function: ptx.Function) -> None:
    found = ptx.immediate_post_dominators(function)
    for block in function.blocks:
        if not reaches_an_exit(function, block.index, avoiding=None):
            assert found[block.index] is None
            continue
        others = [other for other in function.blocks if other.index != block.index]
        needed = [o.index for o in others if not reaches_an_exit(function, block.index, avoiding=o.index)]
        # The nearest one is the one from which all the others are still needed.
        nearest = [
            one
            for one in needed
            if all(not reaches_an_exit(function, one, avoiding=other) for other in needed if other != one)
        ]
        assert [found[block.index]] == (nearest or [None])


def reaches_an_exit(function: ptx.Function, start: int, avoiding: int | None) -> bool:
    seen, waiting = set(), [start]
    while waiting:
        index = waiting.pop()
        if index in seen or index == avoiding:
            continue
        seen.add(index)
        block = function.blocks[index]
        if block.instructions[-1].opcode == "ret":
            return True
        waiting += block.successors
    return False


def test_a_register_that_a_loop_carries_is_live_around_it() -> None:
    text = """.entry k() { .reg .b32 %r<9>; .reg .pred %p1;
    mov.u32 %r1, 0;
    mov.u32 %r2, 5;
    again: add.u32 %r1, %r1, %r2;
    setp.lt.u32 %p1, %r1, 100;
    @%p1 bra again;
    st.shared.u32 [0], %r1; }"""
    live = ptx.live_registers(ptx.parse(text).functions["k"])
    assert live == (frozenset(), {"%r1", "%r2"}, {"%r1"})
