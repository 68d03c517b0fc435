"""``tcgen05``: sums and operands that are touched too early, and writes that the tensor cores may not see."""

from __future__ import annotations

import pytest

from gpulab.simulator.observe.proxies import Proxies
from gpulab.simulator.observe.tensor_core_hazards import TensorCoreHazards

from ..simt.tensor_core_kernels import SHARED_BYTES, WAIT, kernel, run
from ..simt.test_tensor_cores import PLAIN, halves, mma

LOAD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%mine]; tcgen05.wait::ld.sync.aligned;"
STORE = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%mine], {%r3}; tcgen05.wait::st.sync.aligned;"
OVERWRITE = "setp.eq.u32 %q, %t, 1; @%q st.shared.b16 [tile+{at}], 0;"
# Thread 0 lets the TMA copy 16 bytes into the tile; the mbarrier of the copy is far behind the operands.
REFILL = f"""
    setp.ne.u32 %q, %t, 0; @%q bra SENT;
    mov.u32 %v0, tile; add.u32 %v1, %v0, {SHARED_BYTES - 8};
    mbarrier.init.shared.b64 [%v1], 1;
    mbarrier.arrive.expect_tx.shared.b64 %w7, [%v1], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%v0], [%image], 16, [%v1];
    SENT:"""


def found(text: str, tool: type, blocks: int = 1):
    watcher = tool()
    run(text, halves(blocks=blocks), observers=[watcher], **PLAIN)
    return watcher.findings


@pytest.mark.parametrize(
    ("middle", "kind"),
    [
        (LOAD, "sum"),
        (STORE, "sum"),
        (OVERWRITE.format(at=0), "operand"),
        (OVERWRITE.format(at=16384), "operand"),
        (REFILL, "operand"),
    ],
    ids=["read", "written", "A", "B", "refilled"],
)
def test_what_is_touched_before_the_wait_is_found_and_after_it_is_not(middle, kind):
    (hazard,) = found(kernel(mma(), middle=middle), TensorCoreHazards)
    assert hazard.kind == kind
    assert "Product not waited for" in str(hazard)
    assert "mbarrier of a tcgen05.commit" in str(hazard)
    assert not found(kernel(mma(), waits=WAIT + "bar.sync 0;" + middle), TensorCoreHazards)


@pytest.mark.parametrize(
    "middle",
    [
        LOAD.replace("[%mine]", "[%r7]").replace("tcgen05.ld", "add.u32 %r7, %mine, 300; tcgen05.ld"),
        OVERWRITE.format(at=32768),
    ],
    ids=["another column", "another tile"],
)
def test_what_the_product_does_not_use_may_be_touched(middle):
    assert not found(kernel(mma(), middle=middle), TensorCoreHazards)


def test_both_blocks_of_a_pair_must_wait():
    second = "setp.ne.u32 %q, %block, 1; @%q bra ON;" + LOAD + "ON:"
    (hazard,) = found(kernel(mma(group=2), middle=second, group=2), TensorCoreHazards, 2)
    assert hazard.kind == "sum" and hazard.block == (1, 0, 0)


def test_what_threads_wrote_reaches_the_tensor_cores_by_a_fence():
    text = kernel(mma())
    assert not found(text, Proxies)
    unfenced = text.replace("fence.proxy.async.shared::cta; bar.sync 0;", "bar.sync 0;")
    assert unfenced != text
    writes = found(unfenced, Proxies)
    assert len(writes) == 1 and writes[0].reader == "tcgen05.mma"
    assert "Write that tcgen05.mma may not see" in str(writes[0])


# ---- loads and stores that threads must wait for -----------------------------------------------------

USED = """
    .reg .b32 %m<4>;
    tcgen05.ld.sync.aligned.32x32b.x2.b32 {{%m0, %m1}}, [%mine];
    {between}
    mov.b32 %m2, %m1;
    {then}
    st.shared.b32 [tile+40000], %m2;
    tcgen05.wait::ld.sync.aligned;"""


@pytest.mark.parametrize(("between", "then"), [("", ""), ("", "add.u32 %m2, %m2, 1;")])
def test_what_is_used_before_the_wait_for_its_load_is_found(between, then):
    text = kernel("", middle=USED.format(between=between, then=then))
    (hazard,) = found(text, TensorCoreHazards)
    assert hazard.kind == "loading"
    assert "Load from Tensor Memory not waited for" in str(hazard) and "tcgen05.wait::ld" in str(hazard)


@pytest.mark.parametrize(
    ("between", "then"),
    [
        ("tcgen05.wait::ld.sync.aligned;", ""),
        ("", "tcgen05.wait::ld.sync.aligned;"),  # a compiler's copy may stand before the wait
        ("", "add.u32 %m2, %m1, 1; tcgen05.wait::ld.sync.aligned;"),  # as compilers do, whose assembler waits
        ("", "mov.b32 %m2, 7;"),  # something else is handed on
        ("mov.b32 %m3, 7; add.u32 %m3, %m3, 1;", "tcgen05.wait::ld.sync.aligned;"),
    ],
)
def test_what_is_used_after_the_wait_for_its_load_is_right(between, then):
    assert not found(kernel("", middle=USED.format(between=between, then=then)), TensorCoreHazards)


def filled(wait: str) -> str:
    """All threads store an A in Tensor Memory, `wait` and meet, and one asks for the product."""
    return (
        kernel(mma().replace("%first", "[%r7]"))
        .replace(
            "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;",
            "tcgen05.wait::st.sync.aligned; add.u32 %r6, %mine, 256;\n"
            f"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6], {{%r3}};\n{wait}",
        )
        .replace("setp.eq.u32 %lead", "add.u32 %r7, %tmem, 256; setp.eq.u32 %lead")
    )


def test_an_a_whose_store_nobody_waited_for_is_found():
    (hazard,) = found(filled(""), TensorCoreHazards)
    assert hazard.kind == "storing"
    assert "Store to Tensor Memory not waited for" in str(hazard) and "tcgen05.wait::st" in str(hazard)
    assert not found(filled("tcgen05.wait::st.sync.aligned;"), TensorCoreHazards)


def test_a_store_to_columns_that_the_product_does_not_use_may_be_on_its_way():
    text = filled("").replace("add.u32 %r6, %mine, 256;", "add.u32 %r6, %mine, 300;")
    assert not found(text, TensorCoreHazards)
