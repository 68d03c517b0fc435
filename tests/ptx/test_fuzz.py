"""Damaged PTX raises the parser's own error and no other; what still parses survives being printed."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpulab.simulator import ptx
from tests.ptx.test_listing import without_line_numbers

TEXTS = [path.read_text() for path in sorted((Path(__file__).parent / "valid").glob("*.ptx"))]
SMALL = [text for text in TEXTS if len(text) < 6000]
SHARDS = """
    { } ( ) [ ] < > ; : , . + - ! | @ = $ _ % " // /* */ -1 0x 0f3F800000 1e9 99999999999999999999 [[[[ {{{{
    .reg .param .b32 .pred .loc .entry .func .align .global .section .branchtargets
    bra brx ret call %r1 %p1 %tid.x L_1
""".split()  # noqa: SIM905


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A sample with a few spans removed, doubled or replaced by something that PTX has elsewhere."""
    text = draw(st.sampled_from(SMALL))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        span = text[start:end]
        middle = draw(st.one_of(st.sampled_from(["", span + span, *SHARDS]), st.text(max_size=3)))
        text = text[:start] + middle + text[end:]
    return text


def parse_or_refuse(text: str) -> None:
    try:
        module = ptx.parse(text)
    except ptx.PtxError as error:
        assert str(error)
        return
    for function in module.functions.values():
        live = ptx.live_registers(function)
        assert len(live) == len(ptx.immediate_post_dominators(function)) == len(function.blocks)
    again = ptx.parse(ptx.print_module(module))
    assert without_line_numbers(again) == without_line_numbers(module)


@given(damaged())
@settings(max_examples=300)
def test_damaged_ptx_is_refused_or_survives_a_round_trip(text: str) -> None:
    parse_or_refuse(text)


@given(st.lists(st.sampled_from([*SHARDS, "\n", "mov.b32", "name"]), max_size=30))
@example(["{"] * 5000)
@settings(max_examples=200)
def test_heaps_of_shards_are_refused_or_survive_a_round_trip(shards: list[str]) -> None:
    parse_or_refuse(" ".join(shards))
    parse_or_refuse(".entry k() { .reg .b32 %r<9>; .reg .pred %p<9>; " + " ".join(shards) + " ; }")


@given(st.text(max_size=40))
def test_any_text_is_refused_or_survives_a_round_trip(text: str) -> None:
    parse_or_refuse(text)
