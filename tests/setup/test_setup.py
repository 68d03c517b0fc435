"""What `make setup` says when something is missing, and that it does nothing when nothing changed.

The real thing, a new environment from the package index, is what CI does before it comes here.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = ("Makefile", "pyproject.toml", "constraints.txt", "constraints-compiler.txt", "tools/setup.py")


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpulab_setup", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


setup = load(ROOT / "tools" / "setup.py")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with all that the set-up reads, and nothing set up."""
    for part in PARTS:
        (tmp_path / part).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / part, tmp_path / part)
    return tmp_path


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def make(clone: Path, *arguments: str, first: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`make` in the clone; `first` is a folder that stands first on PATH."""
    path = os.pathsep.join([*([str(first)] if first else []), os.environ["PATH"]])
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
    return subprocess.run(
        ["make", *arguments],
        cwd=clone,
        env={**inherited, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_machine_without_python_is_told_what_to_install(clone: Path) -> None:
    ran = make(clone, "setup", "PYTHON=python-that-is-not-there")
    assert ran.returncode != 0
    assert "apt install python3 python3-venv" in ran.stderr


def test_a_python_that_cannot_read_the_script_is_told_so(clone: Path) -> None:
    script(clone / "python2", "exit 1")
    ran = make(clone, "setup", f"PYTHON={clone / 'python2'}")
    assert ran.returncode != 0
    assert "far too old. Name a Python 3.11 or newer" in ran.stderr


def test_a_python_without_venv_is_named_with_its_cure(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = clone / "bin" / "python3"
    debian = (
        f'[ "$2" = venv ] && {{ echo "ensurepip is not available." ; exit 1; }}; exec {sys.executable} "$@"'
    )
    script(fake, debian)
    (clone / "sitecustomize.py").write_text(f"import sys; sys.executable = {str(fake)!r}\n")
    monkeypatch.setenv("PYTHONPATH", str(clone))
    ran = make(clone, "setup", first=fake.parent)
    assert ran.returncode != 0
    version = ".".join(map(str, sys.version_info[:2]))
    assert f"apt install python{version}-venv" in ran.stderr
    assert not (clone / ".venv" / "gpulab-setup.txt").exists()


def test_an_old_python_is_told_apart_from_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(setup.shutil, "which", lambda name: None)
    with pytest.raises(setup.SetupError, match=r"Python 3\.11 or newer is needed; python3 is 3\.9"):
        setup.new_enough("python3")
    monkeypatch.setattr(
        setup.shutil, "which", lambda name: f"/usr/bin/{name}" if name == "python3.12" else None
    )
    assert setup.new_enough("python3") == "/usr/bin/python3.12"


@pytest.mark.parametrize(
    ("driver", "wish", "extra"),
    [
        (None, "auto", "13"),
        ((13, 1), "auto", "13"),
        ((12, 8), "auto", "12"),
        ((11, 4), "auto", "12"),
        ((12, 8), "13", "13"),
        (None, "12", "12"),
    ],
)
def test_the_driver_decides_for_which_cuda_the_compiler_is(
    driver: tuple[int, int] | None, wish: str, extra: str
) -> None:
    assert setup.choose_cuda(wish, driver) == extra


def test_a_cuda_that_there_is_not_is_refused_in_one_line(clone: Path) -> None:
    ran = make(clone, "setup", "CUDA=14")
    assert ran.returncode != 0
    assert "CUDA=14 is not a choice" in ran.stderr


@pytest.mark.parametrize(
    ("pip_says", "cure"),
    [
        ("ERROR: No matching distribution found for nvidia-nvvm==13.5.37", "NVIDIA's compiler has no wheel"),
        ("ERROR: No matching distribution found for cuda-bindings==13.5.0", "NVIDIA's compiler has no wheel"),
        ("ERROR: No matching distribution found for torch==2.13.0", "EXTRAS=none"),
        ("Failed to establish: [Errno -3] Temporary failure in name resolution", "HTTPS_PROXY"),
        ("ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED]", "PIP_CERT"),
        ("OSError: [Errno 28] No space left on device", "free some space"),
        ("ERROR: ResolutionImpossible: for help visit", "make clean"),
        ("Segmentation fault", "not known here"),
    ],
)
def test_what_pip_says_is_explained_with_a_cure(pip_says: str, cure: str) -> None:
    assert cure in setup.explain(f"Collecting numpy\n{pip_says}\n")


def test_a_compiler_that_cannot_be_had_stops_the_set_up_with_its_cure(clone: Path) -> None:
    python = script(
        clone / ".venv" / "bin" / "python",
        'case "$*" in\n'
        "*--version*) ;;\n"
        '*"-e ."*) echo "ERROR: No matching distribution found for nvidia-nvvm==13.5.37"; exit 1 ;;\n'
        "esac",
    )
    ran = make(clone, "setup", "EXTRAS=none", "CUDA=13")
    assert ran.returncode != 0
    assert "NVIDIA's compiler has no wheel for this machine (Python" in ran.stderr
    assert "make setup PYTHON=python3.12" in ran.stderr
    assert python.exists() and not (clone / ".venv" / "gpulab-setup.txt").exists()


def test_a_pytorch_for_another_cuda_is_refused_before_it_is_downloaded(clone: Path) -> None:
    report = (
        '{"install": [{"metadata": {"requires_dist": ["cuda-toolkit[cublas]==13.0.3; platform_system"]}}]}'
    )
    script(clone / ".venv" / "bin" / "python", f"""case "$*" in *--report*) echo '{report}' ;; esac""")
    ran = make(clone, "setup", "CUDA=12")
    assert ran.returncode != 0
    assert "is built for CUDA 13; you need 12" in ran.stderr
    assert "TORCH_INDEX=URL" in ran.stderr
    assert "-e ." not in (clone / ".venv" / "gpulab-setup.log").read_text()


def test_the_compiler_is_pinned_unless_pytorch_brings_its_own(clone: Path) -> None:
    for requires, pinned in (("sympy", True), ("cuda-toolkit[cublas]==13.0.3", False)):
        report = f'{{"install": [{{"metadata": {{"requires_dist": ["{requires}"]}}}}]}}'
        script(clone / ".venv" / "bin" / "python", f"""case "$*" in *--report*) echo '{report}' ;; esac""")
        (clone / ".venv" / "gpulab-setup.txt").unlink(missing_ok=True)
        assert make(clone, "setup", "CUDA=13").returncode == 0
        installed = (clone / ".venv" / "gpulab-setup.log").read_text().splitlines()[-1]
        assert ("constraints-compiler.txt" in installed) is pinned
        assert ".[cu13,cupy13,torch,triton,cute,tile,serving,onnx,grading,site,dev]" in installed


def test_a_second_set_up_does_nothing_until_a_pin_changes(clone: Path) -> None:
    script(clone / ".venv" / "bin" / "python", "exit 0")
    assert make(clone, "setup", "EXTRAS=none").returncode == 0
    (clone / ".venv" / "gpulab-setup.log").unlink()

    again = make(clone, "setup", "EXTRAS=none")
    assert (again.returncode, again.stdout) == (0, "")
    assert not (clone / ".venv" / "gpulab-setup.log").exists()

    settings = clone / "pyproject.toml"
    settings.write_text(settings.read_text().replace("line-length = 110", "line-length = 100"))
    assert make(clone, "setup", "EXTRAS=none").stdout == "", "how we format is no dependency"

    with open(clone / "constraints.txt", "a", encoding="utf-8") as pins:
        pins.write("# a pin\n")
    assert "done" in make(clone, "setup", "EXTRAS=none").stdout


def test_never_both_cudas_are_asked_for() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert not any("cu12" in str(extras[name]) and "cu13" in str(extras[name]) for name in extras)


def test_every_pin_is_exact_and_triton_is_not_pinned_beside_a_cuda_pytorch() -> None:
    everywhere = pins(ROOT / "constraints.txt")
    compiler = pins(ROOT / "constraints-compiler.txt")
    assert "torch" in everywhere and "numba-cuda" in everywhere
    assert not {name for name in everywhere if name.startswith(("nvidia-", "cuda-", "triton"))}
    assert {"triton", "nvidia-nvvm"} <= set(compiler)


def test_the_compilers_that_share_cudas_libraries_are_pinned_to_one_version() -> None:
    """cuTile looks for its compiler beside another version no further."""
    compiler = pins(ROOT / "constraints-compiler.txt")
    assert len({compiler[f"nvidia-{name}"] for name in ("cuda-tileiras", "cuda-nvcc", "nvvm")}) == 1


def test_every_pin_can_be_had_for_the_first_python_311() -> None:
    """Debian 12 has 3.11.2, and a release may ask for a later patch of Python."""
    for name, version in pins(ROOT / "constraints.txt").items():
        try:
            installed = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # of another CUDA
            continue
        if installed.version.partition("+")[0] == version:
            needs = installed.metadata.get("Requires-Python", "")
            assert SpecifierSet(needs).contains("3.11.0"), f"{name} {version} needs Python {needs}"


def pins(path: Path) -> dict[str, str]:
    lines = [
        line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
    ]
    return dict(line.split("==") for line in lines)  # type: ignore[misc]
