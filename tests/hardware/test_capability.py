"""The limits of a compute capability."""

import pytest

from gpulab.simulator import hardware
from gpulab.simulator.hardware import Capability, capability

KIB = 1024
each = pytest.mark.parametrize("cap", hardware.TABLE.values(), ids=str)


def test_the_limits_are_those_of_the_programming_guide() -> None:
    """Warps and blocks per SM, shared memory per SM and per block in KiB, as the guide's table lists them."""
    listed = {
        (7, 0): (64, 32, 96, 96),
        (7, 5): (32, 16, 64, 64),
        (8, 0): (64, 32, 164, 163),
        (8, 6): (48, 16, 100, 99),
        (8, 9): (48, 24, 100, 99),
        (9, 0): (64, 32, 228, 227),
        (10, 0): (64, 32, 228, 227),
        (12, 0): (48, 24, 100, 99),
    }
    for cc, (warps, blocks, per_sm, per_block) in listed.items():
        cap = capability(cc)
        assert (cap.max_warps, cap.max_blocks) == (warps, blocks)
        assert (cap.shared_per_sm, cap.shared_per_block_optin) == (per_sm * KIB, per_block * KIB)


@each
def test_a_block_may_have_1024_threads_and_48_kib_without_asking(cap: Capability) -> None:
    assert cap.max_threads_per_block == 1024
    assert cap.max_block == (1024, 1024, 64)
    assert cap.max_grid == (2**31 - 1, 65535, 65535)
    assert cap.shared_per_block_static == 48 * KIB <= cap.shared_per_block_optin
    assert cap.shared_per_block_optin + cap.shared_reserved == cap.shared_per_sm


@each
def test_the_smallest_carve_out_that_holds_the_bytes_is_taken(cap: Capability) -> None:
    assert list(cap.carveouts) == sorted(cap.carveouts)
    for size in cap.carveouts:
        assert cap.carveout(size) == size
    assert cap.carveout(cap.carveouts[-2] + 1) == cap.shared_per_sm
    with pytest.raises(ValueError, match="shared memory per SM"):
        cap.carveout(cap.shared_per_sm + 1)


@pytest.mark.parametrize("cc", [(8, 0), "8.0", [8, 0]])
def test_a_capability_is_found_as_text_or_numbers(cc: object) -> None:
    assert capability(cc) is hardware.TABLE[8, 0]  # type: ignore[arg-type]


@pytest.mark.parametrize("cc", [(6, 1), "6.1", "sm_80", "", (8,), None])
def test_an_unknown_capability_gets_one_line_with_the_known_ones(cc: object) -> None:
    with pytest.raises(LookupError, match=r"known are 7\.0, 7\.5, 8\.0.*12\.1") as fault:
        capability(cc)  # type: ignore[arg-type]
    assert "\n" not in str(fault.value)
