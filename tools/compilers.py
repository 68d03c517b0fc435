"""Make environments with NVIDIA's compilers of other releases: `.venv-cuda-12.9` and `.venv-cuda-13.0`.

Each holds the compiler of that release with its headers (about 500 MB); everything else comes from `.venv`,
which must be there. `make compilers` calls it; docs/make_compilers.py and its test use them.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# A release's wheels: what compiles, the headers, and what binds them to Python.
WHEELS = {
    "12.9": (
        "cuda-bindings==12.9.*",
        "nvidia-cuda-nvrtc-cu12==12.9.*",
        "nvidia-cuda-nvcc-cu12==12.9.*",  # NVVM, and <mma.h>
        "nvidia-cuda-runtime-cu12==12.9.*",
        "nvidia-cuda-cccl-cu12==12.9.*",
        "nvidia-nvjitlink-cu12==12.9.*",
    ),
    "13.0": (
        "cuda-bindings==13.0.*",
        "nvidia-cuda-nvrtc==13.0.*",
        "nvidia-nvvm==13.0.*",
        "nvidia-cuda-crt==13.0.*",
        "nvidia-cuda-runtime==13.0.*",
        "nvidia-cuda-cccl==13.0.*",
        "nvidia-nvjitlink==13.0.*",
    ),
}

# Behind the environment's own packages, and no place where wheels' libraries are looked for. numba-cuda steps
# in for numba's own numba.cuda by a .pth file, which Python reads in an environment's own folder only.
PATHS = f"{sysconfig.get_path('purelib')}\n{ROOT}\nimport _numba_cuda_redirector\n"


def python_of(release: str) -> Path:
    """The Python of a release's environment, whether it is there or not."""
    return ROOT / f".venv-cuda-{release}" / "bin" / "python"


def make(release: str) -> None:
    """Make or bring up to date one environment."""
    python = python_of(release)
    if not python.exists():
        venv.create(python.parent.parent, with_pip=False)
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    print(f"compilers: {release}", flush=True)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--quiet",
            "--no-deps",
            *WHEELS[release],
        ],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    (Path(site) / "gpulab.pth").write_text(PATHS)


if __name__ == "__main__":
    try:
        for each in sys.argv[1:] or WHEELS:
            make(each)
    except subprocess.CalledProcessError as error:
        sys.exit(f"compilers: failed: {' '.join(map(str, error.cmd))}")
