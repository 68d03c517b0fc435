"""The page on HeCBench says what was kept of each program, and where one was not built or did not end with 0."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conformance import hecbench


def test_the_page_is_made_of_what_was_kept() -> None:
    kept = json.loads(hecbench.KEPT.read_text())
    assert hecbench.page(kept) == hecbench.PAGE.read_text(encoding="utf-8")
    assert set(kept) <= {program.name for program in hecbench.programs()}
    built = [found for found in kept.values() if found["built"]]
    ended = sum(found["code"] == 0 for found in built)
    assert ended * 72 >= 60 * len(built)
    assert all(found["said"] for found in kept.values() if found["code"] or not found["built"])


@pytest.mark.parametrize(
    ("ended", "stdout", "stderr", "built", "said"),
    [
        (0, "PASS\n", "", True, ""),
        (0, "x\nresult: FAIL\n", "", True, "result: FAIL"),
        (3, "", "cudaMalloc returns 2: the device has no more.\n", True, "the device has no more"),
        (
            2,
            "",
            "main.cu does not compile:\n/p/main.cu(3): error: no dfloat\n",
            False,
            "main.cu(3): error: no dfloat",
        ),
    ],
)
def test_an_outcome_has_the_words_of_the_program_or_of_the_compiler(
    ended: int, stdout: str, stderr: str, built: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = subprocess.CompletedProcess([], ended, stdout, stderr)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    found = hecbench.run(hecbench.Program("x"), Path())
    assert (found["built"], found["code"]) == (built, ended) and said in found["said"]
    assert bool(found["said"]) == bool(said)


def test_a_program_is_named_with_its_sources_and_flags() -> None:
    program = hecbench.Program("x", "4 1", "a.cu b.cu", "-std=c++17 -DN=1")
    assert program.command()[-4:] == ["--nvcc=-std=c++17 -DN=1 b.cu", "a.cu", "4", "1"]
