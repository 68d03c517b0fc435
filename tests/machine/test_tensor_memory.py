"""`tensor_memory`: who used which lanes and columns, and when."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab import cuda, machine
from gpulab.analysis.machine.tensor_memory import NoTensorMemory
from gpulab.simulator import device

from ..sanitizer.corpus import on_blackwell

PAIRS = {pair.name: pair for pair in on_blackwell.PAIRS}


@pytest.fixture(autouse=True)
def blackwell():
    before = device.current().gpu
    device.simulate(on_blackwell.GPU)
    yield
    device.current().gpu = before


def used(name: str) -> machine.TensorMemoryUse:
    pair = PAIRS[name]
    return machine.tensor_memory(pair.launch(mended=True), *pair.arguments())


def test_products_and_what_warps_store_and_load_have_their_lanes_columns_and_order():
    found = used("an a is multiplied before it is stored")
    stores = [use for use in found.uses if use.kind == "store"]
    assert {use.columns for use in stores} == {(16 + i, 16 + i) for i in range(8)}
    assert sum(len(use.warps) for use in stores) == 4 * 8  # by every warp
    for use in stores:
        assert use.lanes == (32 * use.warps[0], 32 * use.warps[-1] + 31)
    (product,) = (use for use in found.uses if use.kind == "product")
    assert (product.columns, product.warps) == ((0, 7), (0,))
    loads = [use for use in found.uses if use.kind == "load"]
    assert {use.columns for use in loads} == {(0, 0)}
    assert max(use.stop for use in stores) <= product.start < product.stop <= min(use.start for use in loads)
    assert len({use.line for use in found.uses}) == 3 and 0 not in {use.line for use in found.uses}


def test_a_product_takes_until_somebody_waits_for_it():
    found = used("another sum is read during a product")
    first, second = (use for use in found.uses if use.kind == "product")
    (load, *_) = (use for use in found.uses if use.kind == "load")
    assert first.stop <= load.start < second.stop


def test_the_picture_and_the_table_say_what_was_used():
    found = used("products of one thread need no wait between them")
    caption = found.picture().caption
    assert "4 products" in caption and "in columns 0 to 7" in caption
    text = found.card().text()
    shown = found._repr_mimebundle_()["text/html"]
    assert "<figure" in shown and "4 products" in shown
    assert "product" in text and "0–127" in text and "Tensor Memory, first block" in text


def test_a_kernel_without_tensor_memory_is_told_apart():
    @cuda.jit
    def double(a):
        a[cuda.grid(1)] *= 2

    with pytest.raises(NoTensorMemory, match="uses no Tensor Memory"):
        machine.tensor_memory(double[1, 32], np.zeros(32, np.float32))
