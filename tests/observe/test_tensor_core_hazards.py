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
