"""What the published table of numba-cuda's own tests says is still so."""

from __future__ import annotations

import fnmatch

import pytest

from tests.conformance import numba_cuda
from tests.conformance.numba_cuda_rules import KERNELS_OWN_WORDS, NOT_APPLICABLE, TELLTALES

SAMPLE = (
    "test_boolean",
    "test_complex_kernel",
    "test_iterators",
    "test_minmax",
    "test_sync",
    "test_warp_ops",
)
GOAL = 0.95  # of the applicable tests pass in the table as published


def lost(module: str) -> dict[str, str]:
    """The tests of a module that passed when the table was published and do not now, with the reason."""
    published = numba_cuda.read()
    results = numba_cuda.run_module("gpulab", module).results
    missing = {"outcome": "failed", "reason": "is not there"}
    return {
        name: result["reason"]
        for name, outcome in published.items()
        if numba_cuda.module_of(name) == module and outcome.is_applicable and outcome.gpulab == "passed"
        if (result := results.get(name, missing))["outcome"] != "passed"
    }


@pytest.mark.parametrize("module", SAMPLE)
def test_what_passed_still_passes(module: str) -> None:
    assert lost(f"cudapy.{module}") == {}


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("module", sorted({numba_cuda.module_of(name) for name in numba_cuda.read()}))
def test_everything_that_passed_still_passes(module: str) -> None:
    assert lost(module) == {}


def test_the_page_says_what_the_data_say() -> None:
    page, written = numba_cuda.page(numba_cuda.read()), numba_cuda.PAGE.read_text()
    # The line with the versions is of the machine that made the table.
    assert page.split("## By module")[1] == written.split("## By module")[1]


def test_the_share_that_passes_does_not_fall_and_numbas_own_simulator_is_far_behind() -> None:
    applicable = [outcome for outcome in numba_cuda.read().values() if outcome.is_applicable]
    ours, theirs = (
        sum(getattr(outcome, simulator) == "passed" for outcome in applicable) / len(applicable)
        for simulator in ("gpulab", "cudasim")
    )
    assert ours >= GOAL and theirs < ours - 0.2


def test_every_rule_is_used_and_gives_a_reason() -> None:
    outcomes = numba_cuda.read()
    reasons = {outcome.not_applicable for outcome in outcomes.values()}
    assert {reason for _, reason in NOT_APPLICABLE} | set(TELLTALES.values()) <= reasons
    for pattern in (*(pattern for pattern, _ in NOT_APPLICABLE), *KERNELS_OWN_WORDS):
        assert fnmatch.filter(outcomes, pattern), f"{pattern} is the name of no test that launches a kernel"
    failed = [o for o in outcomes.values() if o.is_applicable and o.gpulab == "failed"]
    assert all(outcome.reason for outcome in failed)
