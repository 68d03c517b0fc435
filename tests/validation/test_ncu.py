"""Nsight Compute is asked for what the table names, and its text is read. The text is made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulab.analysis.profile import METRICS
from validation import ncu
from validation.metrics import COUNTERS, EXTRA, TABLE, named

TEXT = (Path(__file__).parent / "made_by_hand" / "ncu_raw.csv").read_text()
NAMES = (
    "dram__bytes_read.sum",
    "gpu__time_duration.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "launch__registers_per_thread",
    "sm__cycles_elapsed.avg.per_second",
    "smsp__inst_executed.sum",
)


def test_each_launch_is_a_row_in_base_units():
    first, second = ncu.parse(TEXT, NAMES)
    assert first["dram__bytes_read.sum"] == 17664
    assert first["gpu__time_duration.sum"] == pytest.approx(2432e-9)
    assert first["sm__cycles_elapsed.avg.per_second"] == 1755000000.25
    assert first["smsp__inst_executed.sum"] == 2176
    assert "smsp__inst_executed.sum" not in second, "n/a is no number"
    assert second["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 32768


def test_units_that_are_no_base_units_are_converted():
    text = TEXT.replace('"byte","ns"', '"Mbyte","us"').replace('"cycle/second"', '"Gcycle/second"')
    _, second = ncu.parse(text, NAMES)
    assert second["dram__bytes_read.sum"] == pytest.approx(1.05e6)
    assert second["gpu__time_duration.sum"] == pytest.approx(3.58e-6)
    assert second["sm__cycles_elapsed.avg.per_second"] == pytest.approx(1.755e9)


def test_what_was_not_asked_is_not_taken_and_what_is_absent_is_left_out():
    (first, _) = ncu.parse(TEXT, ("smsp__inst_executed.sum", "not__there.sum"))
    assert first == {"smsp__inst_executed.sum": 2176}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access", "CAP-ADD=SYS_ADMIN"),
        ("==ERROR== Profiling failed because a driver resource was unavailable.", "DCGM"),
        ("==WARNING== No kernels were profiled.", "No kernels were profiled"),
        ("==ERROR== something else", "something else"),
        ("", "said nothing"),
    ],
)
def test_text_without_a_table_says_what_to_do(text: str, says: str):
    with pytest.raises(ncu.NcuError) as error:
        ncu.parse(text, NAMES)
    assert says.lower() in str(error.value).lower()


def test_counters_that_the_gpu_does_not_have_are_read_from_the_error():
    asked = ("sm__a.sum", "sm__ab.sum", "sm__b.sum", "sm__c.max")
    assert ncu.unknown("==ERROR== Failed to find metric sm__a.sum\n", asked) == ["sm__a.sum"]
    assert ncu.unknown("==ERROR== Failed to find metric regex:^sm__a...\n", asked) == ["sm__a.sum"]
    text = (
        "==ERROR== Failed to find metric regex:^sm__b\\.(sum|max)$\n==ERROR== Failed to find metric sm__c.max"
    )
    assert ncu.unknown(text, asked) == ["sm__b.sum", "sm__c.max"]
    assert ncu.unknown(TEXT, asked) == []


def test_the_command_leaves_the_clocks_alone_and_flushes_caches():
    command = ncu.command("ncu", "log", ("a", "b"), ["python", "-m", "x"])
    assert command[command.index("--clock-control") + 1] == "none"
    assert command[command.index("--metrics") + 1] == "a,b"
    assert "--cache-control" not in command, "its default flushes"
    assert command[-3:] == ["python", "-m", "x"]


def test_several_counters_make_one_metric_and_an_absent_one_leaves_it_out():
    atoms = {
        f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum": n for op, n in (("atom", 3.0), ("red", 4.0))
    }
    assert named(atoms) == {"global_atomic_sectors": 7.0}
    assert named({"dram__bytes_read.sum": 1.0}) == {}
    assert named({f"dram__bytes_op_{op}.sum": 2.0 for op in ("read", "write")}) == {"dram_bytes": 4.0}
    assert named({EXTRA["clock"]: 2.0}) == {"clock": 2.0}


def test_the_table_names_the_counters_that_the_report_names():
    for row in TABLE:
        if row.name in METRICS and METRICS[row.name].ncu:
            assert METRICS[row.name].ncu in row.ncu[0], row.name
    assert all(COUNTERS.count(counter) == 1 for counter in COUNTERS)
    assert len({row.name for row in TABLE}) == len(TABLE)
