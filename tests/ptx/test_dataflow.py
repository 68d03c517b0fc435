"""Which operands are read and which are written, opcode by opcode."""

from __future__ import annotations

import pytest

from gpulab.simulator import ptx

REGISTERS = ".reg .b32 a, b, c, d, e, f; .reg .pred p, q;"

# instruction: what it writes, what it reads
CASES = {
    "add.s32 a, b, c;": ("a", "b c"),
    "add.s32 a, a, a;": ("a", "a"),
    "mov.u32 a, %tid.x;": ("a", ""),
    "mov.b64 {a, b}, c;": ("a b", "c"),
    "mov.b64 a, {b, c};": ("a", "b c"),
    "@p add.s32 a, b, 1;": ("a", "b p"),
    "@!p add.s32 a, b, 1;": ("a", "b p"),
    "setp.lt.and.s32 p|q, a, b, !p;": ("p q", "a b p"),
    "setp.lt.s32 _|q, a, b;": ("q", "a b"),
    "selp.b32 a, b, c, p;": ("a", "b c p"),
    "ld.global.u32 a, [b+4];": ("a", "b"),
    "ld.global.v4.u32 {a, _, b, c}, [d];": ("a b c", "d"),
    "ld.param.u32 a, [parameter];": ("a", ""),
    "st.global.v2.u32 [a], {b, c};": ("", "a b c"),
    "st.shared.u32 [4], a;": ("", "a"),
    "st.param.b32 [parameter], a;": ("", "a"),
    "red.global.add.u32 [a], b;": ("", "a b"),
    "atom.global.cas.b32 a, [b], c, d;": ("a", "b c d"),
    "atom.global.add.u32 _, [b], c;": ("", "b c"),
    "shfl.sync.idx.b32 a|p, b, c, d, -1;": ("a p", "b c d"),
    "vote.sync.ballot.b32 a, p, b;": ("a", "p b"),
    "match.all.sync.b32 a|p, b, c;": ("a p", "b c"),
    "elect.sync _|p, a;": ("p", "a"),
    "bar.sync 0;": ("", ""),
    "bar.sync a, b;": ("", "a b"),
    "barrier.sync.aligned a;": ("", "a"),
    "bar.red.popc.u32 a, 0, p;": ("a", "p"),
    "barrier.cta.red.or.pred p, 0, q;": ("p", "q"),
    "bar.warp.sync a;": ("", "a"),
    "membar.gl;": ("", ""),
    "fence.acq_rel.gpu;": ("", ""),
    "prefetch.global.L1 [a];": ("", "a"),
    "cp.async.cg.shared.global [a], [b], 16, c;": ("", "a b c"),
    "cp.async.wait_group 0;": ("", ""),
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile [a], [b, {c, d}], [e];": ("", "a b c d e"),
    "mbarrier.init.shared.b64 [a], b;": ("", "a b"),
    "mbarrier.arrive.shared.b64 a, [b];": ("a", "b"),
    "mbarrier.try_wait.parity.shared.b64 p, [a], b;": ("p", "a b"),
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a, b, c, d}, [e];": ("a b c d", "e"),
    "stmatrix.sync.aligned.m8n8.x2.shared.b16 [a], {b, c};": ("", "a b c"),
    "mma.sync.aligned.m16n8k16.f32 {a, b}, {c}, {d}, {e, f};": ("a b", "c d e f"),
    "wmma.store.d.sync.global.f32 [a], {b, c}, d;": ("", "a b c d"),
    "wgmma.mma_async.sync.aligned.m64n8k16 {a, b}, c, d, p, 1, 1, 0, 0;": ("a b", "a b c d p"),
    "wgmma.wait_group.sync.aligned 0;": ("", ""),
    "tex.2d.v4.f32.f32 {a, b, c, d}, [e, {f, f}];": ("a b c d", "e f"),
    "nanosleep.u32 a;": ("", "a"),
    "bra there;": ("", ""),
    "@p bra there;": ("", "p"),
    "brx.idx a, list;": ("", "a"),
    "ret;": ("", ""),
    "call (parameter), function, (parameter, a);": ("", "a"),
    "call (a), function, (b, c);": ("a", "b c"),
    "call function, (a);": ("", "a"),
    "call (a), b, (c), prototype;": ("a", "b c"),
    "call b, (c), prototype;": ("", "b c"),
}


@pytest.mark.parametrize("text", CASES)
def test_an_instruction_writes_and_reads(text: str) -> None:
    around = f".func (.param .b32 r) function(.param .b32 parameter) {{ {REGISTERS} {text}"
    around += "there: prototype: .callprototype _ (); list: .branchtargets there; }"
    instruction = ptx.parse(around).functions["function"].blocks[0].instructions[0]
    written, read = CASES[text]
    assert set(ptx.writes(instruction)) == set(written.split())
    assert set(ptx.reads(instruction)) == set(read.split())


def test_operands_are_split_into_destination_and_sources() -> None:
    text = f".entry k() {{ {REGISTERS} add.s32 a, b, 1; st.shared.u32 [a], b; }}"
    add, store, _ = ptx.parse(text).functions["k"].blocks[0].instructions
    assert ptx.split_operands(add) == (ptx.Register("a"), (ptx.Register("b"), ptx.Immediate(1)))
    assert ptx.split_operands(store) == (None, (ptx.Address(ptx.Register("a")), ptx.Register("b")))
