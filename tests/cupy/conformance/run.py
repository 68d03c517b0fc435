"""Runs CuPy's own tests of its kernels with gpulab in the place of CuPy, and publishes what became of them.

    python tests/cupy/conformance/run.py [--source FOLDER] [-k EXPRESSION]

The tests come from CuPy's source distribution, which pip downloads into a temporary folder unless `--source`
names one that is there. Nothing of it is kept. The table goes to docs/conformance/cupy.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

VERSION = "14.2.0"
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PAGE = ROOT / "docs" / "conformance" / "cupy.md"
TEXTURES = "../cuda_tests/test_texture.py"  # of which the tests of CUDAarray run no kernel
FILES = (
    *(f"{TEXTURES}::{name}" for name in ("TestTexture", "TestTextureVectorType", "TestSurface")),
    "test_raw.py",
    "test_userkernel.py",
    "test_elementwise.py",
    "test_reduction.py",
    "test_carray.py",
)

HEAD = f"""# CuPy's tests of its kernels, on the simulated device

What the tests of RawKernel, RawModule, ElementwiseKernel, ReductionKernel and textures of CuPy {VERSION} say when
`cupy` is `gpulab.cupy`. Made by `python tests/cupy/conformance/run.py`; do not edit.

What is named NVCC is compiled by NVRTC here, and the variants of CuPy's cache are one and the same. Two private
functions that tests call are adapters: `create_reduction_func` is a ReductionKernel, `elementwise_copy` an assignment.
"""


def main() -> int:
    """Run the tests and write the page; 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, help="the folder of CuPy's source distribution")
    parser.add_argument("-k", default="", help="only tests that match; then nothing is published")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = options.source or download(Path(folder))
        results = run(source.resolve(), Path(folder), options.k)
    if options.k:
        for test, (outcome, why) in results.items():
            print(f"{outcome:<15} {test}  {why}")
    else:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page(results), encoding="utf-8")
        print(totals(results))
    return int(any(outcome == "failed" for outcome, _ in results.values()))


def download(folder: Path) -> Path:
    """Fetch the source distribution with pip and unpack it; the folder of its files."""
    stub = {"CUPY_INSTALL_USE_STUB": "1"}  # its metadata can then be read without a CUDA toolkit
    what = ["--no-deps", "--no-binary", "cupy", f"cupy=={VERSION}"]
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), *what]
    if subprocess.run(fetch, env=os.environ | stub, check=False).returncode:
        raise SystemExit(
            "CuPy's source distribution cannot be had here; unpack it yourself and pass --source."
        )
    with tarfile.open(folder / f"cupy-{VERSION}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / f"cupy-{VERSION}"


def run(source: Path, folder: Path, expression: str) -> dict[str, list[str]]:
    """What became of each test: [outcome, why]."""
    tests = source / "tests" / "cupy_tests" / "core_tests"
    found = folder / "results.json"
    environment = os.environ | {
        "GPULAB_SIMULATE": "1",
        "CUPY_SOURCE": str(source),
        "CUPY_CONFORMANCE_RESULTS": str(found),
        "PYTHONPATH": os.pathsep.join(map(str, (HERE / "stand_in", HERE, ROOT))),
    }
    quiet = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-p", "watcher", "-W", "ignore"]
    chosen = ["-k", expression] if expression else []
    config = ["-c", os.devnull, "--rootdir", str(tests.parent)]
    subprocess.run(
        [sys.executable, "-m", "pytest", *quiet, *config, *chosen, *(str(tests / name) for name in FILES)],
        env=environment,
        cwd=folder,
        check=False,
    )
    return json.loads(found.read_text(encoding="utf-8"))


def page(results: dict[str, list[str]]) -> str:
    """The table, a line per class of tests, and why tests failed or do not apply."""
    classes: dict[str, Counter] = defaultdict(Counter)
    reasons: dict[str, Counter] = defaultdict(Counter)
    for test, (outcome, why) in results.items():
        name = class_of(test)
        classes[name][outcome] += 1
        if why:
            reasons[name][f"{outcome}: {why}"] += 1
    lines = [
        HEAD,
        totals(results),
        "",
        "| tests | passed | failed | not applicable |",
        "|---|---:|---:|---:|",
    ]
    for name, counts in classes.items():
        row = " | ".join(str(counts[outcome]) for outcome in ("passed", "failed", "not applicable"))
        lines.append(f"| {name} | {row} |")
    lines += ["", "## Why", ""]
    for name, found in reasons.items():
        lines.append(f"- {name}")
        lines += [f"  - {count} {why}" for why, count in sorted(found.items())]
    return "\n".join(lines) + "\n"


def totals(results: dict[str, list[str]]) -> str:
    """One sentence."""
    counts = Counter(outcome for outcome, _ in results.values())
    passed, failed, others = (counts[outcome] for outcome in ("passed", "failed", "not applicable"))
    share = 100 * passed / max(passed + failed, 1)
    return (
        f"{passed} of {passed + failed} applicable tests pass ({share:.1f} %); "
        f"{others} of {len(results)} do not apply."
    )


def class_of(test: str) -> str:
    """``test_raw.py: TestRaw`` of ``…/test_raw.py::TestRaw::test_basic[…]``."""
    file, *names = test.split("::")
    name, *_ = re.split(r"_param_|\[", names[0])
    return f"{Path(file).name}: {name}"


if __name__ == "__main__":
    sys.exit(main())
