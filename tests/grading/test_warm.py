"""The server that replays are forked from has imported what they need: none of them pays for it."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

from gpulab.checks import find
from gpulab.checks.spec import Case
from grading.core.course import ROOT
from grading.core.judge import Judge, exercise_step, job_bytes, warm_modules
from grading.core.notebooks import Question
from grading.core.replay import ReplayJob
from grading.core.sandbox import Limits, record

COPY = """
from gpulab import cuda
@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]
"""
ASKED = Question("copy-check", "memory.copy", "copy", 4)
CHILD = """
import json, pickle, sys
for name in sys.argv[2:]:
    __import__(name)
before = set(sys.modules)
from gpulab.simulator.compile.ptxas import linked_elsewhere
from grading.core.linking import results
from grading.core.replay import verdicts
job = pickle.load(open(sys.argv[1], "rb"))
with linked_elsewhere(results(job.linked)):
    found = list(verdicts(job))
print(json.dumps([found[0].points, sorted(set(sys.modules) - before)]))
"""


def recorded() -> ReplayJob:
    """A right answer at one size."""
    cases = (Case("2,048", {"n": 2048}),)
    steps = [{"cell": "c0", "source": COPY}, exercise_step(ASKED, find("memory.copy"), cases, [1])]
    content = record(job_bytes({"patience": 20, "steps": steps}), Limits(seconds=60), unsafe=True).content
    seeds = {("memory.copy", "2,048"): 1}
    linked = Judge(b"", Limits(), unsafe=True).linked(content)
    return ReplayJob(content, "", (ASKED,), {"memory.copy": cases}, seeds, {}, {}, linked=linked)


def test_a_replay_after_the_warm_modules_imports_nothing_large(tmp_path: Path) -> None:
    (tmp_path / "job").write_bytes(pickle.dumps(recorded()))
    command = [sys.executable, "-c", CHILD, str(tmp_path / "job"), *warm_modules([ASKED])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    points, late = json.loads(done.stdout)
    assert points == 4
    assert not [
        name for name in late if name.startswith(("cuda.", "gpulab.simulator.simt", "gpulab.checks.lab"))
    ]
    assert "torch" not in late


MAIN = """
import pickle, sys
if __name__ == "__mp_main__":
    open("imported", "w").close()
if __name__ == "__main__":
    from grading.core.judge import Judge
    from grading.core.sandbox import Limits
    print(Judge(b"", Limits()).replays.verdicts(pickle.load(open("job", "rb")))[0].points)
"""


def test_a_replay_does_not_import_the_main_module(tmp_path: Path) -> None:
    (tmp_path / "job").write_bytes(pickle.dumps(recorded()))
    (tmp_path / "main.py").write_text(MAIN)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "main.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "4.0"
    assert not (tmp_path / "imported").exists()


def test_pytorch_is_imported_only_for_labs_that_need_it() -> None:
    torch = Question("fold-check", "pytorch.fold", "fold", 4)
    assert "grading.core.warm_torch" in warm_modules([ASKED, torch])
    assert "grading.core.warm_torch" not in warm_modules([ASKED])
