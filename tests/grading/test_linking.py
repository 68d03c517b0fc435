"""NVIDIA's linker works in a sandbox: PTX that crashes it costs its own exercise, and nobody else loads it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from gpulab.checks import find
from gpulab.checks.spec import Case
from gpulab.simulator.compile import CompileError, Resources, resources
from gpulab.simulator.compile.ptxas import link, link_key, linked_elsewhere
from grading.core import limited, linking, replay, replays, sandbox
from grading.core.course import ROOT
from grading.core.judge import Judge, exercise_step, job_bytes
from grading.core.notebooks import Question
from grading.core.replay import ReplayJob
from grading.core.sandbox import Limits, Outcome
from tests.grading.conftest import LAB, Class

LINKER = "libnvJitLink"
LIMITS = Limits(seconds=60, patience=5)
CASES = (Case("2,048", {"n": 2048}),)
COPIES = """
from gpulab import cuda
@cuda.jit
def first(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]
@cuda.jit
def second(a, b):
    for j in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[j] = a[j]
"""
HEAD = ".version 7.0\n.target sm_80\n.address_size 64\n"
EMPTY = HEAD + ".visible .entry {name}()\n{{\n\tret;\n}}\n"
# Found by changing lines of a compiler's PTX at random and taking away what the crash did not need.
FAULTY = ".func faulty()\n{\n\t.reg .b64 %rd<2>;\n\t.func %rd1;\n}\n"


@pytest.fixture(scope="module")
def job() -> ReplayJob:
    """Two right answers to one exercise, with a kernel each."""
    asked = tuple(Question(name, f"memory.copy@{name}", name, 4) for name in ("first", "second"))
    steps: list[dict[str, Any]] = [{"cell": "c0", "source": COPIES}]
    steps += [exercise_step(q, find("memory.copy"), CASES, [1]) for q in asked]
    content = sandbox.record(job_bytes({"patience": 20, "steps": steps}), LIMITS, unsafe=True).content
    names = [q.exercise for q in asked]
    seeds = {(name, "2,048"): 1 for name in names}
    return ReplayJob(content, "", asked, dict.fromkeys(names, CASES), seeds, {}, {})


def kernel(ptx: str, name: str = "empty", **facts: Any) -> bytes:
    """The line of a record that holds a kernel."""
    known = {"digest": name, "name": name, "entry": name, "ptx": ptx, "cc": [8, 0], "max_registers": None}
    return json.dumps({"line": "kernel", **known, **facts}, separators=(",", ":")).encode() + b"\n"


def linked(content: bytes, cc: tuple[int, int] | None = None) -> dict[str, Any]:
    """Links without walls, for what only asks how the linker's children fare."""
    run = lambda job: sandbox.record(job, LIMITS, unsafe=True)  # noqa: E731
    return linking.results(linking.linked(content, LIMITS.patience, run, cc))


def test_ptx_that_crashes_the_linker_costs_its_own_exercise_only(needs_sandbox: None, job: ReplayJob) -> None:
    lines = job.content.splitlines(keepends=True)
    (at,) = [i for i, line in enumerate(lines) if line.startswith(linking.KERNEL) and b"5first" in line]
    facts = json.loads(lines[at])
    lines[at] = kernel(**{k: v for k, v in facts.items() if k != "line"} | {"ptx": facts["ptx"] + FAULTY})
    forged, judge = b"".join(lines), Judge(b"", LIMITS)
    said = judge.linked(forged)
    assert sorted(type(r).__name__ for r in linking.results(said).values()) == ["Resources", "str"]
    assert b"ptxas crashed (SIGSEGV) on the PTX" in said
    first, second = judge.replays.verdicts(replace(job, content=forged, linked=said))
    assert (first.points, second.points) == (0, 4)


def test_a_kernel_that_did_not_survive_the_linker_is_a_compile_error_in_the_verdict(job: ReplayJob) -> None:
    judge = Judge(b"", LIMITS, unsafe=True)
    one, other = judge.linked(job.content).splitlines()
    lost = json.dumps({"key": json.loads(one)["key"], "why": "ptxas crashed (SIGSEGV) on the PTX"}).encode()
    first, second = judge.replays.verdicts(replace(job, linked=lost + b"\n" + other + b"\n"))
    assert (first.points, second.points) == (0, 4) and not first.ungraded
    assert "CompileError in" in str(first) and "ptxas crashed (SIGSEGV) on the PTX" in str(first)
    both = judge.replays.verdicts(replace(job, linked=b""))
    assert [v.points for v in both] == [0, 0] and "ptxas came to no result" in str(both)


def test_after_a_crash_and_after_a_kernel_that_takes_for_ever_the_next_one_is_linked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = "".join(f"\tadd.f32 %f{i + 1}, %f{i}, %f{i};\n" for i in range(200_000))
    takes_long = HEAD + ".visible .entry long()\n{\n\t.reg .f32 %f<200001>;\n" + body + "\tret;\n}\n"
    texts = {
        "crash": EMPTY.format(name="crash") + FAULTY,
        "refused": EMPTY.format(name="refused").replace("ret", "retire"),
        "fine": EMPTY.format(name="fine"),
        "long": takes_long,
        "last": EMPTY.format(name="last"),
    }
    run = lambda job: sandbox.record(job, LIMITS, unsafe=True)  # noqa: E731
    content = b"".join(kernel(text, name) for name, text in texts.items())
    found = linking.results(linking.linked(content, 0.5, run))
    results = {name: found[link_key(text, (8, 0), name)] for name, text in texts.items()}
    assert "SIGSEGV" in str(results["crash"]) and "refuses" in str(results["refused"])
    assert "stopped after 0.5 s" in str(results["long"])
    assert isinstance(results["fine"], Resources) and isinstance(results["last"], Resources)


def test_the_linkers_sandbox_says_what_the_linker_says_here() -> None:
    text = EMPTY.format(name="empty")
    (used,) = linked(kernel(text)).values()
    (code,) = linked(kernel(text), (9, 0)).values()
    assert used == resources(text) and code == link(text, (9, 0))[1]


@pytest.mark.parametrize(
    "change",
    [
        {"registers": -1}, {"registers": 1.5}, {"registers": True}, {"registers": 10**9},
        {"registers": "1" * 5000}, {"barriers": None},
    ],
    ids=str,
)  # fmt: skip
def test_a_result_that_no_linker_writes_is_left_out(change: dict[str, Any]) -> None:
    good = {"line": "linked", "key": "good", "resources": asdict(Resources(8, 0, 0))}
    forged = {**good, "key": "forged", "resources": {**good["resources"], **change}}  # type: ignore[dict-item]
    other = [b"{", b"[]", b'{"key":1,"why":""}', b'{"key":"c","code":"?"}', b"\xff", b"[" * 100_000]
    lines = [json.dumps(facts).encode() for facts in (forged, good)] + other
    assert linking.results(b"\n".join(lines)) == {"good": Resources(8, 0, 0)}


def test_a_record_without_kernels_starts_no_sandbox() -> None:
    def never(job: bytes) -> Outcome:
        raise AssertionError("nothing is to be linked")

    assert linking.linked(b'{"line":"start","format":1}\n{"line":"done"}\n', 1, never) == b""


def test_results_from_elsewhere_are_of_one_text_capability_entry_and_register_limit() -> None:
    text, used = EMPTY.format(name="empty"), Resources(77, 0, 0)
    with linked_elsewhere({link_key(text, (8, 0), "empty", 32): used}):
        assert resources(text, (8, 0), "empty", 32) is used
        for other in [
            (text + "\n", (8, 0), "empty", 32),
            (text, (9, 0), "empty", 32),
            (text, (8, 0), "empty"),
        ]:
            with pytest.raises(CompileError, match="no result"):
                resources(*other)  # type: ignore[arg-type]
        with pytest.raises(CompileError, match="no result"):
            link(text, (8, 0), 32)  # the machine code is another matter
    assert resources(text, (8, 0), "empty", 32).registers < 77


# ---------------------------------------------------------------- who loads the linker


def loads_it(pid: int | str = "self") -> bool:
    return LINKER in Path(f"/proc/{pid}/maps").read_text()


def after_replaying(job: ReplayJob, here: bool) -> list[Any]:
    """In a limited child: the points of a replay, and whether the linker is loaded now."""
    if here:
        return [[v.points for v in replay.verdicts(job)], loads_it()]
    reading, writing = Pipe(duplex=False)
    replays._in_child(job, writing, LIMITS, 20, 60)
    points = [json.loads(reading.recv_bytes())["verdict"] for _ in job.questions]
    return [[sum(line["points"] for line in v["lines"]) for v in points], loads_it()]


def test_a_replay_does_not_load_the_linker(job: ReplayJob) -> None:
    judge = Judge(b"", LIMITS, unsafe=True)
    ready = replace(job, linked=judge.linked(job.content))
    assert limited.call(after_replaying, ready, False, limits=LIMITS) == [[4, 4], False]
    # The same replay with a linker of its own is seen to load it.
    assert limited.call(after_replaying, ready, True, limits=LIMITS) == [[4, 4], True]


COORDINATOR = """
import os, sys, threading, time
from pathlib import Path
import psutil
from grading.__main__ import main
from grading.core.course import Course

def look(found):
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            names = " ".join(process.cmdline())
            walled = "template.py" in names or "recorder.py" in names or "bwrap" in names
            text = Path(f"/proc/{process.pid}/maps").read_text()
        except (psutil.Error, OSError):
            continue
        kind = "walls" if walled else "forkserver" if "forkserver" in names else "coordinator"
        found.add((kind, "libnvJitLink" in text))

def watch(found):
    while True:
        look(found)
        time.sleep(0.02)

if __name__ == "__main__":
    root, lab, folder = sys.argv[1:]
    found = set()
    threading.Thread(target=watch, args=(found,), daemon=True).start()
    code = main(["grade", lab, folder, "--workers", "1"], Course(Path(root), Path(root) / "grading"))
    look(found)
    print("seen", sorted(found))
    sys.exit(code)
"""


def test_no_process_of_the_coordinator_loads_the_linker(
    needs_sandbox: None, school: Class, tmp_path: Path
) -> None:
    if why := sandbox.no_template():
        pytest.skip(why)
    school.hand_in("ann")
    script = tmp_path / "coordinator.py"
    script.write_text(COORDINATOR)
    command = [sys.executable, str(script), str(school.course.root), LAB, str(school.folder)]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    seen = done.stdout.rpartition("seen ")[2]
    assert "('walls', True)" in seen and "('forkserver', False)" in seen and "('coordinator', False)" in seen
    assert "('forkserver', True)" not in seen and "('coordinator', True)" not in seen
