"""Make or bring up to date the environment in `.venv`. Needs nothing but a Python; `make setup` calls it.

Takes a moment when nothing changed: a stamp in `.venv` holds a digest of all that the environment depends on.
Written so that an old Python can read it far enough to say that it is too old.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "gpulab-setup.txt"
LOG = VENV / "gpulab-setup.log"
CONSTRAINTS = ROOT / "constraints.txt"
COMPILER_CONSTRAINTS = ROOT / "constraints-compiler.txt"

# What pip says when it fails → what that means, and the cure. The first that is found is told.
CURES = [
    (
        r"No space left on device",
        "the disk is full",
        "free some space (everything takes about 4.5 GB without CUDA builds, 10.5 GB with) and run it again;"
        " `make setup EXTRAS=none` needs about 1.5 GB",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED",
        "the package index's certificate is not trusted on this machine",
        "a proxy that inspects traffic needs its certificate named: export PIP_CERT=/path/to/its.pem",
    ),
    (
        r"name resolution|Max retries exceeded|NewConnectionError|ConnectTimeout|ReadTimeout",
        "the package index cannot be reached",
        "check the network; behind a proxy export HTTPS_PROXY, for a mirror export PIP_INDEX_URL",
    ),
    (
        r"No matching distribution found for (nvidia-cutlass-dsl|cuda-tile|nvidia-cuda-tileiras)",
        "CuTe DSL or cuTile has no wheel for this machine ({machine})",
        "`make setup EXTRAS=none` goes without them, and without PyTorch; only their labs need them",
    ),
    (
        r"No matching distribution found for (nvidia-|cuda-|numba)",
        "NVIDIA's compiler has no wheel for this machine ({machine})",
        "it comes for Linux with glibc on x86-64 and 64-bit Arm and a released Python (3.11 or newer): choose"
        " another Python with `make setup PYTHON=python3.12`; on macOS and musl Linux use a Debian container",
    ),
    (
        r"No matching distribution found for (torch|triton|cupy)",
        "PyTorch, Triton or CuPy has no wheel for this machine ({machine})",
        "`make setup EXTRAS=none` goes without them (the labs on CUDA kernels need none of the three);"
        " `make setup TORCH_INDEX=URL` looks for PyTorch in another index too",
    ),
    (
        r"ResolutionImpossible",
        "the packages that were asked for do not go together",
        "the log names them; `make clean` first if another version was put into .venv by hand",
    ),
]

WRONG_TORCH = """\
the PyTorch of the package index is built for CUDA {torch}; you need {cuda}.
One of these helps:
  - a driver of 580 or newer speaks CUDA 13
  - PyTorch's install page names indexes of builds for other CUDAs and for none: make setup TORCH_INDEX=URL
  - make setup CUDA={torch} where the driver is newer than the build
  - make setup EXTRAS=none goes without PyTorch, CuPy and Triton"""


class SetupError(Exception):
    """Something a person must mend; the text says what and how."""


def new_enough(python: str) -> str:
    """The command of a Python that is new enough: this one, or one beside it with its version in its name."""
    if sys.version_info >= OLDEST:
        return python
    found = next(filter(None, (shutil.which(f"python3.{minor}") for minor in (13, 12, 11, 14))), None)
    if found:
        return found
    has = ".".join(map(str, sys.version_info[:2]))
    raise SetupError(
        f"Python {OLDEST[0]}.{OLDEST[1]} or newer is needed; {python} is {has}. Install a newer one"
        " (Debian, Ubuntu: apt install python3.12 python3.12-venv) or name one: make PYTHON=/path/to/python3"
    )


def driver_cuda() -> tuple[int, int] | None:
    """The CUDA version that the NVIDIA driver speaks; None without a driver."""
    version = ctypes.c_int()
    try:
        if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return version.value // 1000, version.value % 1000 // 10


def choose_cuda(wish: str, driver: tuple[int, int] | None) -> str:
    """Which of numba-cuda's extras, 12 or 13. Never both: that resolves to a numba-cuda that is years old."""
    if wish in ("12", "13"):
        return wish
    if wish != "auto":
        raise SetupError(f"CUDA={wish} is not a choice. Take CUDA=12, CUDA=13, or leave it out.")
    return "12" if driver and driver < (13, 0) else "13"


def optional_dependencies() -> dict[str, list[str]]:
    """The extras that pyproject.toml has."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return dict(project["optional-dependencies"])


def digest(options: list[str]) -> str:
    """Changes when the environment would: with dependencies, pins, this file, options."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = [project["build-system"], project["project"], project["tool"]["setuptools"], options, sys.version]
    text = json.dumps(parts, sort_keys=True)
    for path in (CONSTRAINTS, COMPILER_CONSTRAINTS, Path(__file__)):
        text += path.read_text(encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()


def works(python: str) -> bool:
    """Whether the environment's Python is there and has a pip."""
    try:
        return subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


def make_venv() -> str:
    """Make `.venv` unless it is there and works; its Python."""
    python = str(VENV / "bin" / "python")
    if works(python):
        return python
    if VENV.exists():
        print("setup: .venv is incomplete; making it anew")
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(VENV)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if made.returncode == 0:
        return python
    said = made.stdout + made.stderr
    version = ".".join(map(str, sys.version_info[:2]))
    if re.search("ensurepip|No module named venv", said):
        raise SetupError(
            f"{sys.executable} cannot make a virtual environment: its venv package is not installed."
            f" Debian, Ubuntu: apt install python{version}-venv (or python3-venv), then run this again."
        )
    raise SetupError(f"could not make {VENV}: {said.strip() or made.returncode}")


def machine() -> str:
    import platform

    libc = platform.libc_ver()[0] or "no glibc"
    return f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {libc}"


def explain(log: str) -> str:
    """What pip's output means, and what to do."""
    for pattern, what, cure in CURES:
        if re.search(pattern, log):
            return f"{what.format(machine=machine())}.\n  {cure}."
    return "pip failed for a reason that is not known here.\n  The log's last lines may say more."


def pip(python: str, *arguments: str) -> str:
    """Run pip; what takes long is shown, all goes into the log. Returns its output."""
    command = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    output = []
    with open(LOG, "a", encoding="utf-8") as log:
        log.write("$ " + " ".join(command) + "\n")
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
        )
        assert process.stdout
        for line in process.stdout:
            log.write(line)
            output.append(line)
            if re.match(r"\s*(Downloading \S+ \(\d+\.?\d* [MG]B\)|Installing collected)", line):
                print("  " + line.strip()[:100], flush=True)
    text = "".join(output)
    if process.wait() != 0:
        last = "".join("  | " + line for line in output[-4:])
        raise SetupError(f"{explain(text)}\n{last}  Full log: {LOG}")
    return text


def cuda_of_torch(python: str, index: list[str]) -> str | None:
    """The CUDA in the PyTorch that would be installed; such a build pins the compiler and Triton."""
    said = pip(
        python, "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--report", "-",
        "-c", str(CONSTRAINTS), *index, "torch",
    )  # fmt: skip
    report, _ = json.JSONDecoder().raw_decode(said, said.index("{"))
    requires = " ".join(report["install"][0]["metadata"].get("requires_dist", []))
    found = re.search(r"cuda-toolkit\S*==(\d+)|nvidia-\S+-cu(\d+)", requires)
    return found and (found[1] or found[2])


def install(python: str, extras: str, cuda: str, torch_index: str, driver: bool) -> None:
    index = ["--extra-index-url", torch_index] if torch_index else []
    constraints = ["-c", str(CONSTRAINTS)]
    wanted = ["cu" + cuda]
    torch_cuda = None
    pip(python, "install", "--upgrade", *constraints, "pip")
    if extras == "all":
        # A learners' repository has no extras for instructors and developers.
        # cuTile's compiler is of CUDA 13 only.
        tiles = ["cute", "tile"] if cuda == "13" else ["cute"]
        everything = ["cupy" + cuda, "torch", "triton", *tiles, "serving", "onnx", "grading", "site", "dev"]
        wanted += [extra for extra in everything if extra in optional_dependencies()]
        torch_cuda = cuda_of_torch(python, index)
        if torch_cuda not in (None, cuda):
            raise SetupError(WRONG_TORCH.format(torch=torch_cuda, cuda=cuda))
        if torch_cuda and not driver:
            print("setup: this PyTorch has CUDA in it: several GB that a machine without a GPU never uses.")
            print("  PyTorch's install page names an index of smaller builds: make setup TORCH_INDEX=URL")
    if cuda == "13" and not torch_cuda:
        constraints += ["-c", str(COMPILER_CONSTRAINTS)]
    pip(python, "install", *constraints, *index, "-e", f".[{','.join(wanted)}]")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extras", choices=["all", "none"], default="all")
    parser.add_argument("--cuda", default="auto")
    parser.add_argument("--torch-index", default="")
    options = parser.parse_args()
    python = new_enough(sys.executable)
    if python != sys.executable:
        return subprocess.call([python, *sys.argv])
    driver = driver_cuda()
    cuda = choose_cuda(options.cuda, driver)
    now = digest([options.extras, cuda, options.torch_index])
    if STAMP.exists() and STAMP.read_text().strip() == now and (VENV / "bin" / "python").exists():
        return 0
    print(
        f"setup: the NVIDIA driver speaks CUDA {driver[0]}.{driver[1]}; kernels run on the GPU"
        if driver
        else "setup: no NVIDIA driver; kernels run in the simulator"
    )
    venv_python = make_venv()
    STAMP.unlink(missing_ok=True)
    LOG.unlink(missing_ok=True)
    print("setup: installing into .venv; the first time this takes a few minutes", flush=True)
    install(venv_python, options.extras, cuda, options.torch_index, driver is not None)
    STAMP.write_text(now + "\n")
    print("setup: done")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("setup: stopped; run it again to go on", file=sys.stderr)
        sys.exit(130)
