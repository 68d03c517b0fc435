"""Environments as their files make them: copies of the checkout, fresh virtual environments, files read as data."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
UNREACHABLE = re.compile(
    r"name resolution|Max retries exceeded|NewConnectionError|Connect(ion)?Timeout|ReadTimeout"
)


def copy_of_checkout(folder: Path, *only: str) -> Path:
    """What a clone would hold, new files included; or only some of its files and folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *only],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def fresh_python(folder: Path) -> str:
    """The Python of a new virtual environment."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return str(folder / "bin" / "python")


def other_python(version: str) -> str | None:
    """The command of another Python of this machine, if there is one and it starts."""
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"))
    for python in (shutil.which(f"python{version}"), *map(str, installed)):
        if python and subprocess.run([python, "--version"], capture_output=True).returncode == 0:
            return python
    return None


def run(*command: str, cwd: Path, **environment: str) -> str:
    """Run a command; what it printed. Skips the test where the package index cannot be reached."""
    inherited = {
        k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "GPULAB_", "MPL", "PYTHONPATH"))
    }
    ran = subprocess.run(
        command, cwd=cwd, env=inherited | environment, capture_output=True, text=True, check=False
    )
    said = ran.stdout + ran.stderr
    if ran.returncode and UNREACHABLE.search(said):
        pytest.skip("the package index cannot be reached from here")
    assert ran.returncode == 0, said[-3000:]
    return said


def installed(python: str) -> dict[str, str]:
    """Versions by package."""
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=json"], capture_output=True, text=True, check=True
    )
    return {row["name"].lower().replace("_", "-"): row["version"] for row in json.loads(listed.stdout)}


def resolved(python: str, report: Path, *arguments: str) -> dict[str, str]:
    """Versions by package that pip would install for these arguments."""
    run(
        python,
        "-m",
        "pip",
        "install",
        "-q",
        "--dry-run",
        "--ignore-installed",
        "--report",
        str(report),
        *arguments,
        cwd=ROOT,
    )
    rows = [row["metadata"] for row in json.loads(report.read_text(encoding="utf-8"))["install"]]
    return {row["name"].lower().replace("_", "-"): row["version"] for row in rows}


def stand_in(folder: Path, name: str, version: str, module: str) -> str:
    """A wheel with nothing but a version, for a package that takes gigabytes."""
    tag = name.replace("-", "_")
    about = f"{tag}-{version}.dist-info"
    files = {
        f"{module}/__init__.py": f"__version__ = {version!r}\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: gpulab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{about}/RECORD"])
    path = folder / f"{tag}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
    return str(path)


def json_with_comments(path: Path) -> dict:
    """A devcontainer.json: JSON whose lines may be comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return json.loads("\n".join(line for line in lines if not line.strip().startswith("//")))


def dockerfile(path: Path) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile with their arguments, comments left out, continued lines joined."""
    lines = [
        line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")
    ]
    text = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]  # type: ignore[misc]
