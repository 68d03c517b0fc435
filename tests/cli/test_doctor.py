"""The doctor's findings, each with what to do about a "no"."""

from __future__ import annotations

import json
import shutil
import subprocess
from io import StringIO

import pytest
from rich.console import Console

from gpulab.app import doctor
from gpulab.app.doctor import Check, Diagnosis, Finding


def shown(diagnosis: Diagnosis, width: int = 100) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(diagnosis)
    return console.file.getvalue()  # type: ignore[attr-defined]


def find(name: str, diagnosis: Diagnosis) -> Finding:
    return next(finding for finding in diagnosis.findings if finding.name.startswith(name))


def test_every_no_says_what_to_do() -> None:
    for finding in doctor.diagnose().findings:
        assert finding.state != "no" or finding.note


def test_only_a_no_that_is_needed_stops_the_labs() -> None:
    def missing() -> doctor.Result:
        return "no", "", "get it"

    assert doctor.diagnose([Check("an extra", missing)]).ok
    assert not doctor.diagnose([Check("the core", missing, needed=True)]).ok


def test_the_labs_cannot_be_done_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpulab.simulator.compile.compiler_version", lambda: "")
    diagnosis = doctor.diagnose()
    assert not diagnosis.ok
    assert "make setup" in find("compiler", diagnosis).note
    assert "cannot be done" in shown(diagnosis)


def test_a_package_that_is_broken_is_a_finding_and_not_a_crash() -> None:
    def broken() -> doctor.Result:
        raise ImportError("libsomething.so: cannot open shared object file\nand more")

    finding = doctor.diagnose([Check("broken", broken)]).findings[0]
    assert finding.state == "no"
    assert finding.note == "ImportError: libsomething.so: cannot open shared object file. Run: make setup"


def test_an_extra_that_is_not_installed_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda package: "" if package == "torch" else real(package))
    diagnosis = doctor.diagnose()
    assert find("PyTorch", diagnosis).state == "no"
    assert "make setup" in find("PyTorch", diagnosis).note
    assert diagnosis.ok


def test_a_sandbox_that_is_not_installed_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "apt install bubblewrap" in doctor._sandbox()[2]


def test_a_sandbox_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/" + name)
    failed = subprocess.CompletedProcess([], 1, "", "bwrap: No permissions to create a new namespace\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    state, _, note = doctor._sandbox()
    assert state == "no"
    assert "No permissions to create a new namespace" in note
    assert "seccomp" in note


def test_little_memory_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_available_memory", lambda: 0.4e9)
    assert doctor._memory() == ("no", "0.4 GB free", "a check may take 1.5 GB: close other notebooks")


def test_a_kernel_with_a_wrong_result_stops_the_labs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numpy.array_equal", lambda *_: False)
    diagnosis = doctor.diagnose()
    assert find("first kernel", diagnosis).state == "no"
    assert not diagnosis.ok


def test_one_reason_for_two_findings_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULAB_GPU", "H10")
    monkeypatch.setattr("gpulab.simulator.device.choice._current", None)
    diagnosis = doctor.diagnose()
    assert not diagnosis.ok
    assert "no GPU is named 'H10'" in find("GPU", diagnosis).note
    assert find("first kernel", diagnosis).state == "no"
    assert find("first kernel", diagnosis).note == "for the same reason as GPU"


def test_text_and_json_say_the_same() -> None:
    diagnosis = doctor.diagnose()
    text, data = shown(diagnosis, width=300), json.loads(diagnosis.to_json())
    for finding in data["findings"]:
        assert f"{finding['name']} {finding['found']}".strip() in text
        assert finding["note"] in text


def test_the_report_fits_a_terminal_of_80_columns() -> None:
    assert max(map(len, shown(doctor.diagnose(), width=80).splitlines())) <= 80
