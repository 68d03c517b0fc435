"""What products of warpgroups count as, each number worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.analysis.machine.pipes import pipe_of_ptx
from gpulab.analysis.machine.warp import cycles, latency_of
from gpulab.analysis.profile.matrix import matrix_dtype
from gpulab.simulator.compile.machine_code import MachineInstruction
from gpulab.simulator.observe import Counters, Pipelines
from tests.simt.launching import launch
from tests.simt.test_wgmma import ONES, SHARED_BYTES, arguments
from tests.simt.wgmma_kernels import Form, kernel


def counted(form: Form, threads: int = 128, grid: int = 1, observer=None):
    counters = observer or Counters()
    given = arguments(np.zeros((threads, max(form.registers, 8)), "f4"), threads)
    given |= {
        "c": np.zeros((threads, form.registers), "f4"),
        "out": np.zeros((threads, form.registers), "f4"),
    }
    launch(
        kernel(form),
        given | {"image": ONES},
        grid=grid,
        block=threads,
        shared_bytes=SHARED_BYTES,
        observers=[counters],
    )
    return counters.counts


@pytest.mark.parametrize(
    ("form", "read", "flops", "dtype"),
    [
        # 64 rows of 32 bytes of A, 24 columns of 32 bytes of B; 64 · 24 · 16 products, each with an addition
        (Form(24, "f32", "f16", "f16"), 64 * 32 + 24 * 32, 2 * 64 * 24 * 16, "float16"),
        (Form(64, "f32", "bf16", "bf16", held=True), 64 * 32, 2 * 64 * 64 * 16, "bfloat16"),
        (Form(8, "f32", "tf32", "tf32"), 64 * 32 + 8 * 32, 2 * 64 * 8 * 8, "tfloat32"),
        # stored is half of A, and all of B, of which half is used
        (Form(16, "f32", "e4m3", "e5m2", sparse=True), 64 * 32 + 16 * 64, 2 * 64 * 16 * 32, "float8"),
        (Form(16, "s32", "u8", "s8"), 64 * 32 + 16 * 32, 0, "int8"),
    ],
    ids=lambda x: x.opcode if isinstance(x, Form) else "",
)
@pytest.mark.parametrize(("threads", "grid"), [(128, 1), (256, 3)])
def test_a_product_counts_its_operations_and_the_bytes_it_reads(form, read, flops, dtype, threads, grid):
    counts = counted(form, threads, grid)
    warpgroups = threads // 128 * grid
    assert counts.total("warps", "matrix") == 4 * warpgroups
    assert counts.total("bytes", "matrix", "shared") == read * warpgroups
    assert (
        counts.total("wavefronts", "matrix")
        == counts.total("ideal_wavefronts", "matrix")
        == read // 128 * warpgroups
    )
    assert counts.total("requests", "matrix") == 0  # of no warp
    assert counts.total("flops") == flops * warpgroups
    assert counts.total("warps", "matrix_wait") == 4 * warpgroups
    (instruction,) = (i for i in counts.instructions if i.parts[1:2] == ("mma_async",))
    assert matrix_dtype(instruction) == dtype and pipe_of_ptx(instruction) == "tensor"


def test_the_warpgroup_that_has_most_products_is_looked_at_alone():
    """Two warpgroups in each of three blocks ask for one product each."""
    found = counted(Form(8, "f32", "f16", "f16"), 256, 3, Pipelines())
    assert found.warpgroup_products_made == 6
    assert found.warpgroup_products_most == 1


def test_half_of_a_sparse_products_operations_are_none():
    dense, sparse = (counted(Form(16, "f32", "f16", "f16", sparse=s)).total("flops") for s in (False, True))
    assert dense == sparse == 2 * 64 * 16 * 16


# ---- one warp alone ------------------------------------------------------------------------------


def code(*lines: str) -> list[MachineInstruction]:
    return [MachineInstruction(16 * i, line) for i, line in enumerate(lines)]


def test_a_warp_goes_on_while_products_are_made_and_waits_where_it_says_so():
    """Three products of 256 columns, at half a cycle a column: 3 · 128 cycles from the first cycle on."""
    latency = latency_of(30, lambda line: 500, column=0.5)
    products = ["HGMMA.64x256x16.F32 R24, gdesc[UR4], R24"] * 2 + [
        "HGMMA.64x256x16.F32 R24, gdesc[UR4], R24, gsb0"
    ]
    assert cycles(code(*products), latency) == 3
    assert cycles(code(*products, "WARPGROUP.DEPBAR.LE gsb0, 0x0"), latency) == 1 + 3 * 128
    more = code(*products, *products, "WARPGROUP.DEPBAR.LE gsb0, 0x1")
    assert cycles(more, latency) == 1 + 3 * 128


def test_a_narrow_product_takes_as_long_as_any_other():
    """8 columns would be 4 cycles; no product is done before 32."""
    latency = latency_of(30, lambda line: 500, column=0.5)
    lines = "QGMMA.64x8x32.F32.E4M3.E4M3 R24, gdesc[UR4], RZ, !UPT, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x0"
    assert cycles(code(*lines), latency) == 1 + 32
