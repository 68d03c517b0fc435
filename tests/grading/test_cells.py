"""What a learner tries out beside an answer, or imports and never uses, costs no answer."""

from __future__ import annotations

from typing import Any

import pytest

from grading.core.judge import job_bytes
from grading.core.records import Record, read_record
from grading.core.sandbox import Limits, record

ANSWERED = "answered cases"
SPIN = "for _ in iter(int, 1): pass\n"
# By name: the cell, and what `f` of it answers; or a part of why it does not.
CELLS: dict[str, tuple[str, Any]] = {
    "a progress bar that nobody needs": ("from tqdm_xyz import tqdm, trange\nf = lambda: 1", 1),
    "a module under another name": ("import pandas_xyz as pd\nimport seaborn_xyz.core\nf = lambda: 1", 1),
    "all that a module has": ("from pandas_xyz import *\nf = lambda: 1", 1),
    "a name that a module lacks": ("from math import sqrt, cube_root\nf = lambda: sqrt(4)", 2.0),
    "a module that our face lacks": ("from cupyx import jit\nimport cupy as cp\nf = lambda: cp.ndim([1])", 1),
    "an annotation": ("import pandas_xyz as pd\ndef f(x: 'pd.A | None' = None) -> pd.A | pd.B: return 1", 1),
    "a magic for figures": ("%matplotlib widget\nf = lambda: 1", 1),
    "a magic of an extension": ("%load_ext line_profiler_xyz\n%lprun -f f f()\nf = lambda: 1", 1),
    "an import with a way out": (
        "try:\n    import cupy_xyz\n    found = 1\nexcept ImportError:\n    found = 2\nimport tqdm_xyz\n"
        "f = lambda: found",
        2,
    ),
    "an import in a function": (
        "def f():\n    try:\n        import tqdm_xyz\n    except ImportError:\n        return 3",
        3,
    ),
    "a progress bar that is needed": (
        "from tqdm_xyz import tqdm\ndef f():\n    return [i for i in tqdm(range(3))]",
        "`tqdm_xyz.tqdm` is needed, but it cannot be imported where answers are judged",
    ),
    "a module that is needed": (
        "import pandas_xyz as pd\ndef f():\n    return pd.DataFrame([1]).sum()",
        "`pandas_xyz.DataFrame` is needed",
    ),
    "a progress bar that is used before": (
        "from tqdm_xyz import tqdm\nfor i in tqdm(range(3)):\n    print(i)\ndef f(): return 4",
        4,
    ),
    "an import that fails for another reason": (
        "import numpy.nothing_xyz.at_all as n\nf = lambda: n.x.y() or 1",
        "is needed",
    ),
    "its own tests without end": (f"def f(): return g()\n{SPIN}def g(): return 5\n", 5),
    "a table below its own tests": (f"def f(): return TABLE[1]\n{SPIN}TABLE = [6, 6]\n1 / 0", 6),
    "a file that is not here": ("rows = open('data_xyz.csv').read()\nf = lambda: 8", 8),
    "a question to whoever runs the cell": ("size = int(input('how many? '))\nf = lambda: 9", 9),
    "an error of its own": ("def f(): return 7\n1 / 0\ndef f(): return 8", 7),
}


@pytest.fixture(scope="module")
def trace() -> Record:
    steps: list[dict[str, Any]] = []
    for name, (source, _) in CELLS.items():
        steps.append({"cell": name, "source": f"f = None\n{source}"})
        case = {"name": "one", "questions": [[]], "by_hand": []}
        steps.append({"exercise": name, "function": "f", "evidence": ANSWERED, "cases": [case]})
    job = {"patience": 6, "cells": 600, "steps": steps}
    outcome = record(job_bytes(job), Limits(seconds=300), unsafe=True)
    return read_record(outcome.content)


@pytest.mark.parametrize("name", CELLS)
def test_an_answer_is_recorded_whatever_stands_beside_it(trace: Record, name: str) -> None:
    expected = CELLS[name][1]
    if isinstance(expected, str):
        assert expected in trace.failures[name].error
    else:
        assert trace.recorded[ANSWERED][name]["one"] == [expected], trace.failures.get(name)


def test_what_was_left_out_is_said_and_nothing_else(trace: Record) -> None:
    said = {name: " ".join(trace.notes.get(name, ())) for name in CELLS}
    assert "`tqdm_xyz` cannot be imported" in said["a progress bar that nobody needs"]
    assert "`seaborn_xyz.core` cannot" in said["a module under another name"]
    assert "`math.cube_root` cannot be imported" in said["a name that a module lacks"]
    assert "`%load_ext line_profiler_xyz` cannot be run" in said["a magic of an extension"]
    assert "cupy_xyz" not in said["an import with a way out"]
    assert not said["an import in a function"] and not said["a magic for figures"]


def test_cells_have_an_allowance_of_their_own() -> None:
    """17 s of a learner's own tests in each of nine cells cost the exercises after them their time once."""
    steps: list[dict[str, Any]] = []
    for number in range(4):
        source = f"import time\ndef f{number}(): return {number}\ntime.sleep(3600)"
        steps.append({"cell": f"c{number}", "source": source})
        case = {"name": "one", "questions": [[]], "by_hand": []}
        name = f"f{number}"
        steps.append({"exercise": name, "function": name, "evidence": ANSWERED, "cases": [case]})
    job = {"patience": 12, "cells": 4, "steps": steps}  # so 4 s, and three times 2 s
    outcome = record(job_bytes(job), Limits(seconds=200), unsafe=True)
    found = read_record(outcome.content)
    answers = found.recorded[ANSWERED]
    assert found.done and [answers[f"f{n}"]["one"] for n in range(4)] == [[0], [1], [2], [3]]
    assert "stopped after 4 s" in found.cell_failures["c0"].error
    assert "stopped after 2 s" in found.cell_failures["c3"].error
