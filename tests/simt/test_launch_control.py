"""``clusterlaunchcontrol``: blocks take over the work of those that have not begun."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator import simt
from gpulab.simulator.compile.ptxas import link
from gpulab.simulator.simt.errors import WrongBarrier

from .launching import HEADER, element, kernel, launch

SHARED = ".shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar; .reg .b128 %whole;"
# Each block marks its work, asks for more, and goes on as long as it gets any.
WORK = f"""
    setp.eq.u32 %p1, %tid, 0;
    mov.u32 %r1, bar; mov.u32 %r2, answer;
    @%p1 mbarrier.init.shared.b64 [%r1], 1;
    bar.sync 0;
    mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y; mov.u32 %r5, 0;
    AGAIN:
    mov.u32 %r6, %nctaid.x; mad.lo.u32 %r7, %r4, %r6, %r3;
    {element("done", "%r7")}
    @%p1 atom.global.add.u32 %r8, [%rd31], 1;
    mov.u32 %r9, %ctaid.y; mov.u32 %r10, %ctaid.x; mad.lo.u32 %r9, %r9, %r6, %r10;
    {element("by", "%r9", 4, "%rd30")}
    @%p1 atom.global.add.u32 %r8, [%rd30], 1;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1], 16;
    @%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r2], [%r1];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r1], %r5; @!%p2 bra WAIT;
    xor.b32 %r5, %r5, 1;
    ld.shared.v2.b64 {{%rd2, %rd3}}, [%r2];
    mov.b128 %whole, {{%rd2, %rd3}};
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %whole;
    @!%p3 bra DONE;
    QUESTION
    bar.sync 0;
    bra AGAIN;
    DONE:"""
ONE_BY_ONE = """
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r3, %whole;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r4, %whole;"""
TOGETHER = "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r3, %r4, %r11, %r12}, %whole;"


def text(question: str = ONE_BY_ONE) -> str:
    return kernel(WORK.replace("QUESTION", question), "done by", declarations=SHARED)


def run(grid: tuple[int, int], resident: int, question: str = ONE_BY_ONE, **named):
    count = grid[0] * grid[1]
    arrays = {"done": np.zeros(count, np.int32), "by": np.zeros(count, np.int32)}
    return launch(text(question), arrays, (*grid, 1), 32, resident_blocks=resident, **named)


@given(st.integers(1, 7), st.integers(1, 5), st.integers(1, 9), st.booleans(), st.booleans())
def test_all_work_is_done_once_and_by_as_many_blocks_as_fit(across, down, resident, backwards, together):
    named = {"schedule": simt.BACKWARDS} if backwards else {}
    found = run((across, down), resident, TOGETHER if together else ONE_BY_ONE, **named)
    assert (found["done"] == 1).all()
    assert found["by"].sum() == across * down
    assert np.count_nonzero(found["by"]) == min(resident, across * down)


def test_a_random_order_gives_every_block_its_work_once():
    found = run((6, 5), 4, schedule=simt.warp_serial(7))
    assert (found["done"] == 1).all()


def test_where_all_blocks_have_begun_there_is_nothing_to_take_over():
    found = run((3, 2), 6)
    assert found["by"].tolist() == [1] * 6


def test_a_pair_of_blocks_gets_one_answer_together():
    """The first of each pair asks for both, and both read the answer in their own shared memory."""
    ask = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
    body = WORK.replace("QUESTION", TOGETHER + " mov.u32 %r13, %cluster_ctarank; add.u32 %r3, %r3, %r13;")
    body = body.replace(f"@%p1 {ask}", f"@%p4 {ask}.multicast::cluster::all")
    first = "mov.u32 %r13, %cluster_ctarank; setp.eq.and.u32 %p4, %r13, 0, %p1;"
    meet = "barrier.cluster.arrive; barrier.cluster.wait;"
    body = body.replace("AGAIN:", f"{first} {meet} AGAIN:").replace(
        "bar.sync 0;\n    bra AGAIN", f"{meet}\n    bra AGAIN"
    )
    arrays = {"done": np.zeros(12, np.int32), "by": np.zeros(12, np.int32)}
    found = launch(
        kernel(body, "done by", declarations=SHARED), arrays, 12, 32, cluster=(2, 1, 1), resident_blocks=4
    )
    assert (found["done"] == 1).all()
    assert np.count_nonzero(found["by"]) == 4


def test_an_answer_needs_an_mbarrier():
    broken = (
        text()
        .replace("@%p1 mbarrier.init.shared.b64 [%r1], 1;", "")
        .replace("@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1], 16;", "")
    )
    arrays = {"done": np.zeros(2, np.int32), "by": np.zeros(2, np.int32)}
    with pytest.raises(WrongBarrier, match="not initialised"):
        launch(broken, arrays, 2, 32, resident_blocks=1)


@pytest.mark.parametrize("question", [ONE_BY_ONE, TOGETHER])
def test_the_assembler_takes_it(question):
    newer = text(question).replace(HEADER, ".version 8.7\n.target sm_100a\n.address_size 64\n")
    newer = re.sub(r"%tid\b(?!\.)", "%me", newer)  # a name of its own: ptxas knows %tid already
    assert link(newer, (10, 0))[1]
