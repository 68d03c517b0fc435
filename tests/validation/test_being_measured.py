"""What surrounds a measurement: being stopped and going on, permissions, versions, kernels that break.

There is no GPU here, so `stand_ins/` has programs and a driver in its place. They say nothing of a GPU, and what
they give goes into a temporary folder only.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpulab.simulator import hardware
from gpulab.simulator.compile import compiler_version
from tests.validation import stand_in
from validation.children import ROOT
from validation.metrics import COUNTERS
from validation.model import model
from validation.table import chosen

BOTH = ("copy/cuda", "saxpy/cuda")
ZEROS = ("banks-4B-1/cuda", "banks-4B-2/cuda")


@dataclass(frozen=True)
class Bench:
    """A folder with the stand-ins and launch traces, and the file that is measured into."""

    folder: Path
    out: Path
    traces: Path | None = None

    def environment(self, **more: str) -> dict[str, str]:
        path = os.pathsep.join([str(self.folder), os.environ["PATH"]])
        return {**os.environ, "PATH": path, "LD_LIBRARY_PATH": str(self.folder), **more}

    def start(self, *arguments: str, command: str = "measure", **more: str) -> subprocess.Popen[str]:
        known = ["--traces", str(self.traces)] if self.traces and command == "measure" else []
        return subprocess.Popen(
            [sys.executable, "-m", "validation", command, "--out", str(self.out), *known, *arguments],
            cwd=ROOT, env=self.environment(**more), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *arguments: str, command: str = "measure", **more: str) -> tuple[int, str]:
        process = self.start(*arguments, command=command, **more)
        output, errors = process.communicate(timeout=240)
        return process.returncode, output + errors

    @property
    def data(self) -> dict:
        return json.loads(self.out.read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = stand_in.driver(tmp_path_factory.mktemp("stand_ins"))
    for name in ("ncu", "compute-sanitizer", "nvidia-smi"):
        shutil.copy(stand_in.HERE / name, made / name)
    return made


@pytest.fixture(scope="module")
def known(folder: Path) -> Path:
    """The launch traces of the kernels that these tests measure."""
    path = folder / "traces.json"
    wanted = [*BOTH, *ZEROS, "gather/cuda"]
    command = [sys.executable, "-m", "validation", "compile", "--out", str(path), "--only", *wanted]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "GPULAB_SIMULATE": "1"})
    return path


@pytest.fixture
def bench(folder: Path, known: Path, tmp_path: Path) -> Bench:
    return Bench(folder, tmp_path / "H200.json", known)


def test_what_was_measured_is_kept_and_the_rest_is_measured_next_time(bench: Bench):
    code, text = bench.run("--only", "copy/cuda")
    assert code == 0, text
    first = bench.data
    assert first["machine"]["gpu"] == "NVIDIA H200" and first["machine"]["driver"] == "580.65.06"
    assert first["machine"]["sms"] == 132 and first["machine"]["l2_bytes"] == 1 << 20
    assert first["machine"]["ncu"] == "2025.3.0.0" and first["machine"]["compilers"]
    assert set(first["kernels"]["copy/cuda"]) == {"4096", "262144", "4194304"}
    one = first["kernels"]["copy/cuda"]["4096"]
    assert 0 < one["seconds"]["low"] <= one["seconds"]["median"] <= one["seconds"]["high"]
    assert one["seconds"]["clock"] == pytest.approx(1755e6, rel=1e-3), "as a kernel sees it"
    assert first["start"]["median"] > 0 and first["start"]["runs"] == 50
    assert one["counters"]["global_load_requests"] == 1000 + COUNTERS.index(
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
    )
    code, text = bench.run("--only", *BOTH)
    assert code == 0 and "times, 1 of 1: saxpy/cuda" in text and "counters, 1 of 1: saxpy/cuda" in text
    assert bench.data["kernels"]["copy/cuda"] == first["kernels"]["copy/cuda"]
    assert set(bench.data["kernels"]) == set(BOTH)
    assert list(bench.out.parent.iterdir()) == [bench.out]


@pytest.mark.parametrize(
    "by",
    [
        signal.SIGINT,
        *(pytest.param(by, marks=pytest.mark.slow) for by in (signal.SIGTERM, signal.SIGKILL)),
    ],
    ids=lambda by: by.name,
)
def test_whoever_stops_it_loses_one_batch_at_most(bench: Bench, by: signal.Signals):
    code, text = bench.run("--only", "copy/cuda", "--times-only")
    assert code == 0, text
    before = bench.data
    process = bench.start("--only", *BOTH, "--times-only", STAND_IN_SLOW="5000000")
    assert "times, 1 of 1: saxpy/cuda" in process.stdout.readline()
    time.sleep(1)
    process.send_signal(by)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == (-by if by == signal.SIGKILL else 130)
    assert bench.data == before
    if by != signal.SIGKILL:
        assert "goes on from there" in errors and "Traceback" not in errors
        assert not _running(str(bench.folder))


def _running(folder: str) -> list[str]:
    """Processes with the stand-in for the driver."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if folder in entry.read_bytes().decode(errors="replace") and entry.parent.name != str(
                os.getpid()
            ):
                found.append(entry.parent.name)
        except OSError:
            continue
    return found


def test_without_permission_the_times_are_kept_and_the_cure_is_told(bench: Bench):
    code, text = bench.run("--only", "copy/cuda", STAND_IN_NCU="permission")
    assert code == 2
    assert "ERR_NVGPUCTRPERM" in text and "--cap-add=SYS_ADMIN" in text and "--times-only" in text
    assert "Traceback" not in text
    assert "seconds" in bench.data["kernels"]["copy/cuda"]["4096"]
    code, text = bench.run("--only", "copy/cuda")
    assert code == 0 and "times, " not in text, "with permission it goes on with the counters"
    assert "counters" in bench.data["kernels"]["copy/cuda"]["4096"]


def test_a_counter_that_the_gpu_does_not_have_is_left_out_and_named(bench: Bench):
    missing = "sm__inst_executed_pipe_tensor.sum"
    code, text = bench.run("--only", "copy/cuda", STAND_IN_NCU=missing)
    assert code == 0, text
    assert bench.data["absent"] == [missing]
    counters = bench.data["kernels"]["copy/cuda"]["4096"]["counters"]
    assert "pipe_tensor" not in counters and "pipe_alu" in counters


def test_a_kernel_that_breaks_is_named_and_the_others_go_on(bench: Bench):
    code, text = bench.run("--only", "gather/cuda", "copy/cuda", "--times-only")
    assert code == 0, text
    assert "wrong on the GPU" in bench.data["failed"]["gather/cuda"]
    assert "copy/cuda" in bench.data["kernels"]
    code, text = bench.run("--only", "saxpy/cuda", "--times-only", STAND_IN_FAULT="1")
    assert code == 0
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in bench.data["failed"]["saxpy/cuda"]


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"STAND_IN_CUDA": "12040"}, "the driver knows CUDA up to 12.4"),
        ({"STAND_IN_GPU": "NVIDIA GH200 480GB"}, "no GPU is named"),
        ({"STAND_IN_OTHER_CODE": "1"}, "machine code is for another GPU"),
    ],
)
def test_a_machine_that_does_not_do_is_told_what_to_do(bench: Bench, environment: dict[str, str], says: str):
    code, text = bench.run("--only", "copy/cuda", "--times-only", **environment)
    assert code == 2 and says in text and "Traceback" not in text
    assert not bench.out.exists()


# What a machine has that holds PyTorch and tools, but not this project's environment.
NO_COMPILER = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {"numba.cuda", "cuda.bindings.nvrtc", "cuda.bindings.nvjitlink", "triton", "torch", "cupy"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
"""


def test_launch_traces_need_no_compiler_where_they_are_measured(bench: Bench, tmp_path: Path):
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "sitecustomize.py").write_text(NO_COMPILER)
    bare = {"PYTHONPATH": str(tmp_path / "bare")}
    code, text = bench.run("--only", "copy/cuda", **bare)
    assert code == 0, text
    assert "compiling" not in text
    (variant,) = chosen(["copy/cuda"])
    here = model(variant, variant.kernel.sizes[0], hardware.find("H200"))
    assert bench.data["kernels"]["copy/cuda"]["4096"]["digest"] == here["digest"]
    assert bench.data["machine"]["compilers"] == compiler_version()
    code, text = Bench(bench.folder, tmp_path / "other.json").run("--only", "copy/cuda", **bare)
    assert code == 2 and "python -m validation compile" in text and "Traceback" not in text


@pytest.mark.slow  # compiles
def test_without_launch_traces_it_compiles_first(bench: Bench):
    code, text = Bench(bench.folder, bench.out).run("--only", "copy/cuda", "--times-only")
    assert code == 0 and "compiling 1 kernels" in text, text
    assert set(bench.data["kernels"]) == {"copy/cuda"}


def test_launch_traces_of_another_gpu_or_of_nothing_are_refused(bench: Bench, tmp_path: Path):
    other = json.loads(bench.traces.read_text()) | {"sheet": "A100"}
    for name, text, says in (
        ("A100.json", json.dumps(other), "runs other machine code"),
        ("old.json", "{}", "compile again"),
        ("broken.json", "{", "cannot be read"),
    ):
        path = tmp_path / name
        path.write_text(text)
        code, told = Bench(bench.folder, bench.out, path).run("--only", "copy/cuda", "--times-only")
        assert code == 2 and says in told and "Traceback" not in told


def test_results_that_are_wrong_in_the_same_way_stop_nothing(bench: Bench):
    """The stand-in runs neither kernel, so that one after the other gives zeros."""
    code, text = bench.run("--only", *ZEROS, "--times-only")
    assert code == 0 and "can be taken of no kernel" not in text
    assert set(bench.data["failed"]) == set(ZEROS) and len(set(bench.data["failed"].values())) == 1


@pytest.mark.slow  # lets twenty seconds pass
def test_when_its_time_is_over_it_ends_and_nothing_is_called_broken(bench: Bench):
    code, text = bench.run("--only", "copy/cuda", "--times-only")
    assert code == 0, text
    before = bench.data
    code, text = bench.run("--only", *BOTH, "--minutes", "0.3", STAND_IN_NCU="hanging")
    assert code == 0 and "minutes are over" in text, text
    assert not bench.data["failed"]
    assert bench.data["kernels"]["copy/cuda"] == before["kernels"]["copy/cuda"]
    assert "2 not complete" in text


@pytest.mark.slow  # tries two kernels one by one, twice
def test_where_counters_work_for_no_kernel_it_does_not_try_all(bench: Bench):
    code, text = bench.run("--only", *BOTH, STAND_IN_NCU="broken")
    assert code == 2 and "counters can be taken of no kernel" in text and "Traceback" not in text
    assert all("seconds" in bench.data["kernels"][key]["4096"] for key in BOTH)
    code, text = bench.run("--only", *BOTH)
    assert code == 0 and not bench.data["failed"], "what was no kernel's fault is tried again"


def test_another_version_of_the_profiler_with_another_table_is_read(bench: Bench):
    code, text = bench.run("--only", "copy/cuda", STAND_IN_NCU="another")
    assert code == 0, text
    counters = bench.data["kernels"]["copy/cuda"]["4096"]["counters"]
    assert counters["global_load_requests"] == 1000 + COUNTERS.index(
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
    )


def test_a_kernel_that_does_not_load_is_named_and_the_others_go_on(bench: Bench):
    code, text = bench.run("--only", *BOTH, "--times-only", STAND_IN_MISSING="saxpy")
    assert code == 0, text
    assert set(bench.data["kernels"]) == {"copy/cuda"}
    assert "CUDA_ERROR_NOT_FOUND" in bench.data["failed"]["saxpy/cuda"]


def test_another_driver_does_not_go_on_with_the_file(bench: Bench):
    bench.run("--only", "copy/cuda", "--times-only")
    data = bench.data
    data["machine"]["driver"] = "570.00"
    bench.out.write_text(json.dumps(data))
    code, text = bench.run("--only", *BOTH, "--times-only")
    assert code == 2 and "570.00" in text and "--again" in text
    assert bench.data == data


@pytest.mark.slow  # eight processes under tools
def test_the_corpus_runs_under_all_four_tools(bench: Bench):
    name = "a dynamic tile has no barrier"
    code, text = bench.run("--only", name, command="sanitize", STAND_IN_REPORT="racecheck")
    assert code == 0, text
    entry = bench.data["kernels"][name]
    assert bench.data["machine"]["compute_sanitizer"] == "2025.3.0"
    assert entry["kind"] == "race"
    assert {"kind": "race", "lines": entry["lines"]} in entry["gpulab"]["wrong"]
    assert entry["gpulab"]["mended"] == []
    assert entry["tools"]["wrong"]["racecheck"] == {"told": [{"kind": "race", "lines": [11, 15]}]}
    assert entry["tools"]["wrong"]["memcheck"] == {"told": []}
    assert all(result == {"told": []} for result in entry["tools"]["mended"].values())


def test_without_the_programs_it_says_what_is_missing(bench: Bench, tmp_path: Path):
    (tmp_path / "bare").mkdir()
    shutil.copy(bench.folder / "libcuda.so.1", tmp_path / "bare" / "libcuda.so.1")
    bare = Bench(tmp_path / "bare", tmp_path / "x.json", bench.traces)
    if shutil.which("ncu") or shutil.which("compute-sanitizer"):
        pytest.skip("they are here")
    code, text = bare.run("--only", "copy/cuda")
    assert code == 2 and "Nsight Compute (ncu) is not here" in text and "--times-only" in text
    code, text = bare.run(command="sanitize")
    assert code == 2 and "compute-sanitizer is not here" in text
