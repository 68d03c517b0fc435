"""The newest releases of CuTe DSL and cuTile, looked for once a night: what we reach into may be gone in them."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpulab.simulator.compile import cute_dsl, cutile
from gpulab.simulator.compile.packages import Internals

ROOT = Path(__file__).parents[2]
ADDS = {
    "CuTe DSL": """
from gpulab.cutlass.cute.runtime import from_dlpack
from tests.cutlass_dsl import kernels
kernels.add(*map(from_dlpack, (a, a, c)))
""",
    "cuTile": """
from gpulab import tile as ct
from tests.cutile import kernels
ct.launch(0, (8,), kernels.add, (a, a, c, 128))
""",
}
START = "import numpy as np\na = np.arange(1000, dtype=np.float32)\nc = np.zeros_like(a)\n"
END = "assert (c == 2 * a).all()\nimport {module}\nprint({module}.__file__)\n"
MODULES = {"CuTe DSL": "cutlass", "cuTile": "cuda.tile"}


def with_newest(package: Internals, folder: Path) -> str:
    """Install the newest release, and what else it asks for, in `folder`; skips where nothing can be fetched.

    Returns its version.
    """
    wanted = [package.distribution]
    if package is cutile.PACKAGE:
        wanted.append(cutile.TILEIRAS)
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--upgrade",
        "--target",
        str(folder),
        *wanted,
    ]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=1200)
    if done.returncode:
        pytest.skip(f"{package.distribution} cannot be fetched: {done.stderr.strip().splitlines()[-1]}")
    (found,) = importlib.metadata.distributions(name=package.distribution, path=[str(folder)])
    return found.version


@pytest.mark.slow  # some 100 MB from the network
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("package", [cute_dsl.PACKAGE, cutile.PACKAGE], ids=lambda package: package.name)
def test_the_newest_release_compiles_and_runs(package: Internals, tmp_path: Path) -> None:
    """One that does not must at least be refused in a line that names those that do."""
    if not package.version:
        pytest.skip(f"{package.name} is not installed")
    version = with_newest(package, tmp_path)
    program = START + ADDS[package.name] + END.format(module=MODULES[package.name])
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths, "GPULAB_GPU": "A100", "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )  # fmt: skip
    if done.returncode == 0:
        assert done.stdout.strip().startswith(str(tmp_path))  # it was the newest that ran
        return
    last = done.stderr.strip().splitlines()[-1]
    assert f"Tested versions: {', '.join(package.tested)}" in last, done.stderr[-2000:]
    pytest.fail(f"{package.name} {version} is refused: {last}", pytrace=False)
