"""`pytest --gpulab`: tests of CUDA code on a simulated GPU, in processes of their own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpulab
from gpulab.app.pytest_plugin import github, snapshots

ROOT = Path(gpulab.__file__).resolve().parent.parent

KERNELS = """
import numpy as np
from numba import cuda


@cuda.jit
def double(a, out):
    i = cuda.grid(1)
    out[i] = a[i] + a[i]


@cuda.jit
def rotate(a):
    tile = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    tile[i] = a[i]
    a[i] = tile[(i + 1) % 64]
"""
DOUBLE, ROTATE = 9, 16  # lines of KERNELS that go wrong
TESTS = """
import numpy as np
import pytest
from numba import cuda
from kernels import double, rotate

cupy = pytest.importorskip("cupy")


@pytest.fixture
def vector():
    return np.arange(1000, dtype=np.float32)


@pytest.mark.gpulab_counts
@pytest.mark.parametrize("n", [64, 128])
def test_double(n):
    a = np.ones(n, np.float32)
    double[n // 64, 64](a, a)
    assert (a == 2).all()


def test_beyond(vector):
    double[4, 256](vector, vector)


def test_race():
    rotate[1, 64](np.zeros(64, np.float32))


@pytest.mark.gpulab(gpu="H100")
def test_on_another_gpu(simulated_gpu):
    assert cuda.get_current_device().compute_capability == (9, 0)
    double[1, 64](cupy.ones(64, "f4"), cupy.ones(64, "f4"))
    assert simulated_gpu.counts()["double"]["global_store_sectors"] == 8


def test_on_the_usual_gpu():
    assert cuda.get_current_device().compute_capability == (8, 0)


@pytest.mark.gpulab(limit=3)
def test_limit():
    double[1, 32](np.zeros(32, np.float32), np.zeros(32, np.float32))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small project: kernels and their tests."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "test_kernels.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    return tmp_path


def pytest_in(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the project's tests."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB", "PYTEST"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), clean["PATH"]])
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env=clean | {"PYTHONPATH": str(ROOT), "PATH": path} | environment,
    )


def numbers(ended: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """How many tests passed, failed …"""
    return {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|error)", ended.stdout)}


def test_faults_end_at_the_line_of_the_kernel_after_that_of_the_test(folder: Path) -> None:
    ended = pytest_in(folder, "--gpulab", "-k", "beyond or on_ or limit")
    assert numbers(ended) == {"failed": 2, "passed": 2}, ended.stdout + ended.stderr
    said = ended.stdout
    assert f"\nkernels.py:{DOUBLE}: OutOfBounds in kernel double, line {DOUBLE}\n" in said
    assert "E   thread (232, 0, 0) of block (3, 0, 0) read a[1000]" in said
    assert re.search(r"test_kernels\.py:\d+: in test_beyond\n    double\[4, 256\]\(vector, vector\)\n", said)
    assert f"{os.sep}gpulab{os.sep}" not in said  # no frames of ours
    assert "FAILED test_kernels.py::test_beyond - OutOfBounds in kernel double" in said
    assert "after 3 instructions" in said


def test_a_kernel_in_a_string_fails_at_its_line_in_the_python_file(folder: Path) -> None:
    (folder / "test_kernels.py").write_text(
        'import cupy\n\nFILL = cupy.RawKernel(r"""\n\nextern "C" __global__ void fill(float *a) {\n'
        '    a[threadIdx.x] = 1;\n}""", "fill")\n\n'
        'def test_fill():\n    FILL((1,), (64,), (cupy.zeros(32, "f4"),))\n'
    )
    ended = pytest_in(folder, "--gpulab")
    assert "\ntest_kernels.py:6: OutOfBounds in kernel fill, line 4\n" in ended.stdout


def test_races_fail_a_test_that_passes_without_the_sanitizer(folder: Path) -> None:
    assert numbers(pytest_in(folder, "--gpulab", "-k", "race")) == {"passed": 1}
    ended = pytest_in(folder, "--gpulab-sanitize", "-k", "race")
    assert numbers(ended) == {"failed": 1}
    assert (
        f"\nkernels.py:{ROTATE}: Race in kernel rotate, shared array `tile`\n" in ended.stdout
        and "Usual cure:" in ended.stdout
    )


def test_findings_are_told_beside_an_assertion_that_fails(folder: Path) -> None:
    wrong = TESTS.replace(
        "rotate[1, 64](np.zeros(64, np.float32))", "rotate[1, 64](np.zeros(64, np.float32))\n    assert False"
    )
    (folder / "test_kernels.py").write_text(wrong)
    ended = pytest_in(folder, "--gpulab", "--gpulab-sanitize", "-k", "race")
    assert "assert False" in ended.stdout and "Race in kernel rotate" in ended.stdout


def test_without_the_option_the_fixture_skips_and_nothing_else_changes(folder: Path) -> None:
    (folder / "test_kernels.py").write_text(
        "import sys, importlib\n\ndef test_nothing_is_redirected():\n"
        "    assert 'gpulab.app.programs' not in sys.modules\n"
        "    assert importlib.import_module.__module__ == 'importlib'\n\n"
        "def test_counts(simulated_gpu): ...\n"
    )
    ended = pytest_in(folder, "-rs")
    assert numbers(ended) == {"passed": 1, "skipped": 1} and "pytest --gpulab" in ended.stdout


def test_counts_are_held_against_a_snapshot_that_update_writes(folder: Path) -> None:
    """Both tests of a file write into one snapshot, also where two processes run them."""
    missing = pytest_in(folder, "--gpulab", "-k", "double")
    assert (
        numbers(missing) == {"failed": 2} and "No snapshot of the counts of test_double[64]" in missing.stdout
    )
    updated = pytest_in(folder, "--gpulab-update", "-k", "double", "-n", "2")
    assert numbers(updated) == {"passed": 2}, updated.stdout
    assert "wrote the counts of 2 tests to gpulab_counts/test_kernels.json" in updated.stdout
    file = folder / "gpulab_counts" / "test_kernels.json"
    kept = json.loads(file.read_text())["tests"]
    # 64 float32 are 8 sectors of 32 bytes, and line 9 loads twice the same.
    assert kept["test_double[64]"]["A100"]["kernels"]["double"]["global_store_sectors"] == 8
    assert kept["test_double[128]"]["A100"]["kernels"]["double"]["global_store_sectors"] == 16
    assert numbers(pytest_in(folder, "--gpulab", "-k", "double")) == {"passed": 2}

    (folder / "kernels.py").write_text(
        KERNELS.replace("out[i] = a[i] + a[i]", "out[i] = a[i] + a[i - i % 2]")
    )
    slower = pytest_in(folder, "--gpulab", "-k", "double", "-n", "2")
    assert numbers(slower) == {"failed": 2}
    assert re.search(r"double: instructions \d+ → \d+ \(\+\d+\.\d%\)", slower.stdout)
    assert "run pytest --gpulab-update and commit" in slower.stdout
    assert json.loads(file.read_text())["tests"] == kept, "without --gpulab-update nothing is written"


def test_junit_has_the_place_in_the_kernel_and_the_counts(folder: Path) -> None:
    pytest_in(folder, "--gpulab-update", "--junitxml=out.xml", "-k", "double or beyond")
    cases = {case.get("name"): case for case in ElementTree.parse(folder / "out.xml").iter("testcase")}
    failure = cases["test_beyond"].find("failure")
    assert failure is not None and failure.get("message") == f"OutOfBounds in kernel double, line {DOUBLE}"
    assert f"kernels.py:{DOUBLE}: OutOfBounds" in str(failure.text)
    properties = {p.get("name"): p.get("value") for p in cases["test_double[64]"].iter("property")}
    assert properties["gpulab double global_store_sectors"] == "8"


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_github_gets_an_annotation_at_the_kernels_line(folder: Path, processes: tuple[str, ...]) -> None:
    here = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(folder.parent)}
    ended = pytest_in(folder, "--gpulab-sanitize", "-k", "beyond or race", *processes, **here)
    told = [line for line in ended.stdout.splitlines() if line.startswith("::error ")]
    assert {line.partition(",title=")[0] for line in told} == {
        f"::error file={folder.name}/kernels.py,line={line}" for line in (DOUBLE, ROTATE)
    }
    assert all("%0A" in line for line in told)


def test_nothing_is_annotated_outside_github(folder: Path) -> None:
    assert "::error" not in pytest_in(folder, "--gpulab", "-k", "beyond").stdout


RECIPE = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository as the recipe wants it, with the files that the page says to commit."""
    folder = tmp_path_factory.mktemp("repository")
    kernels = folder / "tests" / "kernels"
    kernels.mkdir(parents=True)
    (kernels / "conftest.py").write_text(
        "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\n"
    )
    (kernels / "kernels.py").write_text(KERNELS)
    (kernels / "test_kernels.py").write_text(re.split(r"\n\n\ndef test_beyond", TESTS)[0])
    (folder / "train.py").write_text(
        "import sys\nsys.path.insert(0, 'tests/kernels')\nfrom kernels import double\nimport numpy as np\n"
        "double[2, 64](np.ones(128, 'f4'), np.ones(128, 'f4'))\n"
    )
    (folder / "saxpy.cu").write_text(
        "#include <cstdlib>\n__global__ void saxpy(int n) {}\n"
        "int main(int count, char **words) { saxpy<<<1, 32>>>(atoi(words[1])); return cudaDeviceSynchronize(); }\n"
    )
    (folder / "requirements.txt").write_text("gpulab\npytest-xdist\n")
    return folder


def test_the_commands_of_the_recipe_for_github_run(repository: Path) -> None:
    """Each `run:` line of the page, in order; before them the commands that write the files to commit."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB", "PYTEST"))}
    before = re.findall(
        r"^    (pytest --gpulab-update.*|gpulab run --write-budget.*train\.py.*)$", RECIPE, re.M
    )
    steps = re.findall(r"^ *- run: (.+?)(?: +#.*)?$", RECIPE, re.M)
    assert len(before) == 2 and len(steps) == 4
    for command in (*before, *steps):
        if command.startswith("pip"):  # the one of this environment, which has all that is named already
            command = f"{sys.executable} -m {command} --no-index"
        ended = subprocess.run(
            shlex.split(command), cwd=repository, capture_output=True, text=True, env=clean | {"PATH": path}
        )
        assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
    assert (repository / "results.xml").is_file()


@given(st.text(max_size=30), st.text(max_size=30))
def test_an_annotation_is_one_line_whose_parts_can_be_told_apart(title: str, message: str) -> None:
    complaint = {"file": "a.py", "line": 3, "title": title, "message": message}
    line = github.annotation(complaint, Path("/tests"))
    properties, _, text = line.removeprefix("::error ").partition("::")
    parts = properties.split(",")
    assert len(parts) == 3 and "\n" not in line and "\r" not in line

    def plain(escaped: str) -> str:
        for character in ",:\n\r%":
            escaped = escaped.replace(f"%{ord(character):02X}", character)
        return escaped

    assert plain(parts[2]) == f"title={title}" and plain(text) == message


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ("gpu='H10'", "H10"),
        ("size=3", "has no argument 'size'; it has gpu, sanitize, limit"),
        ("limit='3'", "must be a int"),
        ("'H100'", "by name: gpu, sanitize, limit"),
    ],
)
def test_a_marker_that_means_nothing_is_a_message(folder: Path, marker: str, words: str) -> None:
    (folder / "test_kernels.py").write_text(
        f"import pytest\n@pytest.mark.gpulab({marker})\ndef test_it(): ...\n"
    )
    ended = pytest_in(folder, "--gpulab")
    assert words in ended.stdout and "Traceback" not in ended.stdout and ended.returncode == 1


def test_an_unknown_gpu_is_a_wrong_command_line(folder: Path) -> None:
    ended = pytest_in(folder, "--gpulab-gpu", "B52")
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR and "--gpulab-gpu: " in ended.stderr


@pytest.mark.parametrize("text", ["[]", "{", '{"format": 2, "tests": {}}'])
def test_a_file_without_counts_is_refused_in_words(text: str, tmp_path: Path) -> None:
    file = tmp_path / "test_x.json"
    file.write_text(text)
    with pytest.raises(snapshots.CountsDiffer, match="Delete it and run pytest --gpulab-update"):
        snapshots.compare(file, "test_x", "A100", {"kernels": {}, "compilers": {}})


def test_another_compiler_is_named_where_counts_differ(tmp_path: Path) -> None:
    file = tmp_path / "counts" / "test_x.json"
    ones = dict.fromkeys(snapshots.LISTED, 1)
    snapshots.write(file, {"test_x": {"A100": snapshots.entry({"add": ones}, {"add": "NVVM 12.9"})}})
    now = snapshots.entry({"add": ones | {"flops": 2}, "sub": ones}, {"add": "NVVM 13.5", "sub": "NVVM 13.5"})
    with pytest.raises(snapshots.CountsDiffer) as differ:
        snapshots.compare(file, "test_x", "A100", now)
    assert str(differ.value).splitlines() == [
        "The counts of test_x differ from its snapshot",
        "    add: flops 1 → 2 (+100.0%)",
        "    sub is new",
        "The snapshot of add was made with NVVM 12.9, and this run uses NVVM 13.5; another compiler may make other "
        "instructions.",
        f"If the change is intended, run pytest --gpulab-update and commit {file}.",
    ]
