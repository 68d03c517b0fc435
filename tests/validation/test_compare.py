"""What was modelled beside what was measured: pairs, goals, tables, figures. Measured here is the model itself,
with numbers changed, so that the right answer is known."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from gpulab.plot import style
from gpulab.simulator import hardware
from gpulab.simulator.hardware import pipelines
from validation import children, goals, measured
from validation.case import Variant
from validation.compare import compare
from validation.machine import CHILD, child
from validation.model import WrongResult, model_all
from validation.plot import predicted
from validation.table import chosen

SIZES = 2


@pytest.fixture(scope="module")
def modelled():
    variants = chosen(["copy/cuda", "sum-tree/numba", "histogram-shared/cuda", "banks-4B-8/cuda"])
    launches = [(v, size) for v in variants for size in v.kernel.sizes[:SIZES]]
    return model_all(launches, hardware.find("H200"))


@pytest.fixture
def as_modelled(modelled):
    """Measurements that agree in everything."""
    return {
        key: {
            size: {
                "digest": one["digest"],
                "seconds": {"median": one["seconds"]},
                "counters": {**one["counts"], "kernel_seconds": one["kernel_seconds"]},
            }
            for size, one in sizes.items()
        }
        for key, sizes in modelled.items()
    }


def test_the_model_agrees_with_itself(modelled, as_modelled):
    found = compare("H200", modelled, as_modelled)
    assert [goal.met for goal in found.goals] == [True] * 5
    assert found.of("sass_instructions").exact == found.of("sass_instructions").pairs == 8
    assert not found.other_code
    assert "met: time, rank correlation" in str(found) and "missed" not in str(found)


def test_counts_that_both_do_not_have_prove_nothing(modelled, as_modelled):
    found = compare("H200", modelled, as_modelled)
    assert found.of("local_load_sectors").pairs == 0
    assert found.of("global_atomic_requests").pairs == SIZES, "of histogram-shared alone"


def test_one_counter_that_is_off_is_seen(modelled, as_modelled):
    other = deepcopy(as_modelled)
    other["copy/cuda"]["4096"]["counters"]["global_load_sectors"] *= 2
    found = compare("H200", modelled, other)
    assert found.of("global_load_sectors").exact == found.of("global_load_sectors").pairs - 1
    assert found.goals[0].reached < 1


def test_times_that_are_off_miss_the_goal(modelled, as_modelled):
    other = deepcopy(as_modelled)
    for sizes in other.values():
        for one in sizes.values():
            one["seconds"]["median"] *= 2
    found = compare("H200", modelled, other)
    time = next(goal for goal in found.goals if goal.name == "time, mean error")
    assert time.reached == pytest.approx(0.5) and time.met is False
    assert "missed: time, mean error: 0.500, at most 0.2 wanted" in str(found)
    ranks = next(goal for goal in found.goals if goal.name == "time, rank correlation")
    assert ranks.met, "all twice as long: the order is the same"


def test_other_machine_code_is_not_compared(modelled, as_modelled):
    other = deepcopy(as_modelled)
    other["copy/cuda"]["4096"]["digest"] = "another"
    found = compare("H200", modelled, other)
    assert found.other_code == ("copy/cuda at 4,096",)
    assert found.of("sass_instructions").pairs == 7
    assert "1 launches were measured with other machine code" in str(found)


def test_times_alone_leave_the_other_goals_open(modelled, as_modelled):
    other = deepcopy(as_modelled)
    for sizes in other.values():
        for one in sizes.values():
            del one["counters"]
    found = compare("H200", modelled, other)
    assert [goal.met for goal in found.goals] == [None, None, True, True, None]
    assert "open: memory and banks exact: not measured" in str(found)


def test_the_goals_are_those_that_were_set():
    assert (goals.EXACT, goals.SASS_ERROR, goals.TIME_ERROR, goals.RANKS, goals.DRAM_ERROR) == (
        0.95, 0.03, 0.20, 0.95, 0.10,
    )  # fmt: skip


def test_the_figure_says_how_many_are_near_and_names_the_farthest():
    times = {"near": (1e-5, 1.1e-5), "far": (1e-4, 5e-4), "equal": (2e-3, 2e-3)}
    picture = predicted(times, "H200")
    assert "2 of 3 launches modelled within 20 %" in picture.caption
    assert "far" in [text.get_text() for text in picture.axes.texts]
    assert picture.png().startswith(b"\x89PNG")
    with pytest.raises(style.NothingToDraw):
        predicted({}, "H200")


def test_machine_code_has_the_same_name_in_another_process(modelled, tmp_path):
    """Where numba has compiled nothing before: it numbers kernels and their shared arrays."""
    out = tmp_path / "model.json"
    command = child("model", "--only", "sum-tree/numba", "--sizes", "1", "--gpu", "H200", "--out", str(out))
    assert children.run(command, 120, CHILD).code == 0
    assert f'"{modelled["sum-tree/numba"]["4096"]["digest"]}"' in out.read_text()
    digests = {one["digest"] for sizes in modelled.values() for one in sizes.values()}
    assert len(digests) == len(modelled), "one for each kernel, whatever its size"


def test_a_model_of_a_wrong_result_is_refused():
    (copy,) = chosen(["copy/numba"])
    case = copy.kernel.case(256)
    wanted = case.expected[1].copy()
    wanted[3] += 1
    kernel = replace(copy.kernel, case=lambda size: replace(case, expected={1: wanted}))
    with pytest.raises(WrongResult, match=r"copy/numba at 256: .* at \[3\]"):
        model_all([(Variant(kernel, "numba"), 256)], hardware.find("H200"))


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deeper" / "H200.json"
    measured.save(path, {"format": measured.FORMAT, "kernels": {}})
    with pytest.raises(TypeError):
        measured.save(path, {"format": measured.FORMAT, "kernels": object()})
    assert measured.load(path)["kernels"] == {}
    path.write_text('{"format": 0}')
    with pytest.raises(ValueError, match="measure again"):
        measured.load(path)


@pytest.mark.parametrize("what", ["gpu", "driver", "compilers"])
def test_measurements_of_another_machine_are_not_mixed(tmp_path, what: str):
    path, here = tmp_path / "x.json", {"gpu": "H200", "driver": "580", "compilers": "13.5", "clock": 1}
    measured.save(path, {"format": measured.FORMAT, "machine": here, "kernels": {"a": 1}, "failed": {}})
    assert measured.begun(path, here | {"clock": 2}, again=False)["kernels"] == {"a": 1}
    with pytest.raises(measured.OtherMachine, match="--again"):
        measured.begun(path, here | {what: "other"}, again=False)
    assert measured.begun(path, here | {what: "other"}, again=True)["kernels"] == {}


def test_times_are_modelled_at_the_clocks_at_which_they_were_measured():
    (chain,) = chosen(["chain-f32/cuda"])
    gpu, size = hardware.find("H200"), chain.kernel.sizes[0]
    half = float(gpu.boost_clock) / 2
    measured = {chain.key: {str(size): {"seconds": {"clock": half}, "counters": {"clock": half / 2}}}}
    (usual,) = model_all([(chain, size)], gpu)[chain.key].values()
    (seen,) = model_all([(chain, size)], gpu, measured=measured)[chain.key].values()
    alone = usual["seconds"] - usual["start"]
    nearly = {"rel": 0.01}  # DRAM keeps its pace
    assert seen["seconds"] - seen["start"] == pytest.approx(2 * alone, **nearly), "cycles take twice as long"
    assert seen["kernel_seconds"] - seen["start"] == pytest.approx(4 * alone, **nearly)
    assert seen["counts"] == usual["counts"]


def test_the_start_that_was_measured_takes_the_place_of_the_assumed_one(modelled, as_modelled):
    found = compare("H200", modelled, as_modelled, start=5e-6)
    for name, (ours, theirs) in found.times["seconds"].items():
        assert ours == pytest.approx(theirs - float(pipelines.LAUNCH) + 5e-6), name
    assert found.times["kernel_seconds"] == compare("H200", modelled, as_modelled).times["kernel_seconds"]
    assert "does nothing took 5.00 µs" in str(found)
    assert measured.start({"start": {"median": 5e-6}}) == 5e-6 and measured.start({}) is None


def test_only_launches_that_lie_apart_have_an_order(modelled, as_modelled):
    names = sorted(as_modelled)
    other = {name: {size: one for size, one in list(as_modelled[name].items())[:1]} for name in names[:3]}
    for sizes, low, high in zip(other.values(), (1e-6, 2e-6, 9e-6), (3e-6, 4e-6, 9.5e-6), strict=True):
        for one in sizes.values():
            one["seconds"] |= {"low": low, "high": high}
    found = compare("H200", modelled, other)
    assert found.order[1] == 2, "the third lies apart from both; the first two overlap"
    assert "Of 2 pairs of launches whose measured times lie apart" in str(found)
