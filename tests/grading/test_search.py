"""The search for over-earning answers: its mutants are the changes that they say, and what is odd is found."""

from __future__ import annotations

import pytest

from grading.core.course import Course
from grading.redteam.mutators import MUTATORS, mutants
from grading.redteam.plays import source_of
from grading.redteam.search import (
    Judged,
    Origin,
    Suspicion,
    known,
    origins,
    reason_for,
    suspicions,
    why_suspicious,
)

KERNEL = """\
@cuda.jit
def total(a, out):
    tile = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    out[0] = 0
    if t < a.size and t < 256:
        tile[t] = a[t]
    cuda.syncthreads()
    cuda.atomic.add(out, 0, tile[t])


def run(a, out):
    if a.size == 0:
        return
    total[a.size // 256, 256](a, out)


@triton.jit
def double(a, out, n):
    at = tl.arange(0, 256)
    x = tl.load(a + at, mask=at < n)
"""
CUDA = 'text = """extern "C" __global__ void f(double* a) {\n    s[1] = a[0];\n    __syncthreads();\n}"""'


@pytest.mark.parametrize("name", [mutator.name for mutator in MUTATORS])
def test_each_kind_of_change_is_made_of_a_cell_that_invites_it(name: str) -> None:
    made = [m for m in mutants(KERNEL) if m.mutator == name]
    assert made
    for mutant in made:
        compile(mutant.source, name, "exec")
        assert mutant.source != KERNEL


def test_a_barrier_goes_and_all_else_stays() -> None:
    (mutant,) = [m for m in mutants(KERNEL) if m.mutator == "drops a barrier"]
    assert "syncthreads" not in mutant.source and "cuda.atomic.add(out, 0, tile[t])" in mutant.source
    assert mutant.what == "line 8: cuda.syncthreads()"


def test_a_zero_keeps_its_type_because_it_needs_no_bits() -> None:
    source = "a = np.float32(0)\nb = np.float32(x)\nc = cuda.local.array(8, np.float32)"
    made = [m for m in mutants(source) if m.mutator == "takes fewer bits"]
    assert len(made) == 2 and all("a = np.float32(0)" in m.source for m in made)


def test_cuda_cpp_is_changed_within_its_text() -> None:
    made = {m.mutator: m.source for m in mutants(CUDA)}
    assert "__syncthreads" not in made["drops a barrier"] and "double* a" in made["drops a barrier"]
    assert "float* a" in made["takes fewer bits"]
    assert "threadIdx.x % 32 == turn" in made["lets lanes take turns"]


PIPELINE = '''text = """extern "C" __global__ void f(float* a) {
    ptx::fence_proxy_async(ptx::space_shared);
    wait(&full, 0);
    __pipeline_wait_prior(2);
    wait_products<0>();
    while (!ptx::mbarrier_test_wait_parity(&full, 1)) {}
    if (t % 32 == 0) ptx::mbarrier_arrive(&empty);
    cluster.sync();
}
"""'''


def test_waits_fences_and_arrivals_of_a_pipeline_are_dropped_one_by_one() -> None:
    made = list(mutants(PIPELINE))
    assert sorted(m.mutator for m in made) == [
        "drops a fence", "drops a guard", "drops a meeting of the cluster", *["drops a wait"] * 4,
        "drops an arrival",
    ]  # fmt: skip
    assert len({m.source for m in made}) == 8


def test_a_kernel_in_a_cell_of_its_own_is_changed_with_the_code_that_launches_it() -> None:
    solutions = {each.exercise: each.text for each in origins(Course(), "23") if each.is_right}
    text = solutions["async.tile"]
    assert text.index("transposing = cp.RawKernel") < text.index("def transpose(a, out)")
    assert "drops a wait" in {m.mutator for m in mutants(text)}
    assert "RawKernel" not in solutions["async.depth"]


def origin(name: str = "solution", text: str = "") -> Origin:
    return Origin(source_of(Course(), "start.double"), "start.double", name, text)


def test_what_costs_more_than_twice_as_much_is_odd_and_what_costs_a_little_more_is_not() -> None:
    (mutant,) = [m for m in mutants(KERNEL) if m.mutator == "launches three times"]
    plain = Judged(2, 2, "plain", {"atomics": 0, "launches": 6, "global sectors": 1000})
    dear = Judged(2, 2, "mutant", {"atomics": 100, "launches": 6, "global sectors": 1500})
    assert why_suspicious(origin(), mutant, plain, dear) == "100 atomics instead of 0"
    cheap = Judged(2, 2, "mutant", {"atomics": 0, "launches": 6, "global sectors": 1500})
    assert why_suspicious(origin(), mutant, plain, cheap) == ""
    lost = Judged(1, 2, "mutant", dear.costs)
    assert why_suspicious(origin(), mutant, plain, lost) == ""


def test_a_wrong_answer_that_a_trick_helps_is_odd() -> None:
    (mutant,) = [m for m in mutants(KERNEL) if m.mutator == "launches three times"]
    wrong = origin("double_no_guard")
    assert why_suspicious(wrong, mutant, Judged(0, 2, "a"), Judged(1, 2, "b")) == "the answer itself earns 0"
    assert why_suspicious(wrong, mutant, Judged(1, 2, "a"), Judged(1, 2, "b")) == ""


def test_a_change_in_cuda_cpp_is_shown_as_the_line_that_changed() -> None:
    mutant = next(m for m in mutants(PIPELINE) if m.what.startswith("wait(&full, 0);"))
    found = str(Suspicion(origin(text=PIPELINE), mutant, Judged(2, 2), "does less than the solution"))
    assert "-    wait(&full, 0);" in found and "wait_products" not in found


BARRIER_FOR_NOTHING = """\
from gpulab import cuda


@cuda.jit
def double(a, out):
    i = cuda.grid(1)
    cuda.syncthreads()
    if i < a.size:
        out[i] = a[i] + a[i]
"""


@pytest.mark.usefixtures("needs_sandbox")
def test_the_search_finds_a_barrier_that_nobody_needs_and_no_missing_guard() -> None:
    answer = origin(text=BARRIER_FOR_NOTHING)
    chosen = [m for m in mutants(answer.text) if m.mutator in ("drops a barrier", "drops a guard")]
    (found,) = suspicions(answer, chosen)
    assert found.mutant.mutator == "drops a barrier" and found.why == "does less than the solution"
    assert "-    cuda.syncthreads()" in str(found) and not reason_for(found)


def test_everything_that_is_known_has_a_reason_and_says_which_mutants_it_means() -> None:
    for each in known():
        assert each["reason"] and {"exercise", "mutator", "what", "why"} & each.keys()
    (mutant,) = [m for m in mutants(KERNEL) if m.mutator == "launches three times"]
    assert reason_for(Suspicion(origin("no_such_answer"), mutant, Judged(2, 2), "nothing like it")) == ""
