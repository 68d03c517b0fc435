"""What ``tcgen05`` counts as, worked out by hand."""

from __future__ import annotations

import pytest

from gpulab.analysis.profile.matrix import matrix_dtype
from gpulab.simulator.observe import Counters

from ..simt.tensor_core_kernels import COLUMNS, instruction_descriptor, kernel, run
from ..simt.test_tensor_cores import PLAIN, halves, mma


def counted(text: str, blocks: int = 1, **named):
    watcher = Counters()
    run(text, halves(blocks=blocks), observers=[watcher], **PLAIN | named)
    return watcher.counts


def test_a_product_counts_its_operations_and_the_bytes_of_its_operands():
    """128 × 64 × 16, two operations each; A has 128 rows of 32 bytes, and B 64."""
    counts = counted(kernel(mma()))
    assert counts.total("requests", "tensor_product") == 1
    assert counts.total("flops", "tensor_product") == 2 * 128 * 64 * 16
    assert counts.total("bytes", "tensor_product", "shared") == (128 + 64) * 32
    assert counts.total("wavefronts", "tensor_product") == (128 + 64) * 32 // 128


def test_a_product_of_a_pair_counts_once_with_the_operands_of_both():
    wide = {"descriptor": instruction_descriptor(256, 64, 1, 0, 0)}
    counts = counted(kernel(mma(group=2), group=2), 2, **wide)
    assert counts.total("requests", "tensor_product") == 1
    assert counts.total("flops", "tensor_product") == 2 * 256 * 64 * 16
    assert counts.total("bytes", "tensor_product") == (256 + 64) * 32


def test_an_a_in_tensor_memory_is_not_read_from_shared_memory():
    text = kernel("add.u32 %r7, %tmem, 256;\n" + mma().replace("%first", "[%r7]"))
    assert counted(text).total("bytes", "tensor_product") == 64 * 32


def test_whole_numbers_are_no_floating_point_operations():
    whole = {"descriptor": instruction_descriptor(128, 64, 2, 1, 1)}
    counts = counted(kernel(mma("i8")), **whole)
    assert counts.total("flops") == 0
    assert counts.total("requests", "tensor_product") == 1


def test_each_thread_moves_four_bytes_a_register():
    """The kernel stores and loads each of the 512 columns of its 128 lanes once."""
    counts = counted(kernel(mma()))
    for kind in ("tensor_load", "tensor_store"):
        assert counts.total("bytes", kind, "tensor") == 128 * COLUMNS * 4
        assert counts.total("requests", kind) == 4 * COLUMNS


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("f16", "float16"), ("tf32", "tfloat32"), ("f8f6f4", "float8"), ("i8", "int8")],
)
def test_a_kind_has_the_rate_of_its_numbers(kind, dtype):
    number = {"f16": 0, "tf32": 2, "f8f6f4": 0, "i8": 1}[kind]
    shape = {"descriptor": instruction_descriptor(128, 64, 2 if kind == "i8" else 1, number, number)}
    counts = counted(kernel(mma(kind)), **shape)
    assert [dtype] == [found for i in counts.instructions if (found := matrix_dtype(i)) is not None]
