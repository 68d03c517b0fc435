"""The files for other places (docs/environments.md): what can be proven of them here, from their own commands.

Slow ones make environments from the package index, which needs a network.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from pathlib import Path

import jupytext
import nbformat
import pytest
import yaml
from packaging.specifiers import SpecifierSet

from gpulab.app.course import catalogue
from grading.core import cgroup
from grading.lms.hosted import INSTALL, runs_on_binder
from grading.lms.preprocessors import StableIds
from tests.setup.environments import (
    ROOT,
    copy_of_checkout,
    dockerfile,
    fresh_python,
    installed,
    json_with_comments,
    other_python,
    resolved,
    run,
    stand_in,
)

DEV_CONTAINERS = sorted((ROOT / ".devcontainer").rglob("devcontainer.json"))
DOCKERFILES = sorted((ROOT / "containers").glob("*.Dockerfile"))
WORKFLOW = ROOT / ".github" / "workflows" / "tests.yml"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
BINDERS_MEMORY = 1_500_000_000  # bytes; Binder gives 1 to 2 GB

patient = pytest.mark.timeout(1800)


def solved(source: Path) -> nbformat.NotebookNode:
    """A notebook with its solutions."""
    return StableIds().preprocess(jupytext.read(source), {"unique_key": source.stem})[0]


SOURCES = {path.stem: path for path in sorted((ROOT / "solutions").glob("*/*.py"))}
RELEASED = sorted((ROOT / "labs").glob("*/*.ipynb"))
ON_BINDER = [path.stem for path in RELEASED if runs_on_binder(nbformat.read(path, 4))]
SHORT_PATH_WITH_PYTORCH = [
    path.stem
    for path in RELEASED
    if path.stem[:2] in catalogue.paths()[0].labs and path.stem not in ON_BINDER
]


def assert_make_knows(command: str) -> None:
    """Its target, and every variable that it sets."""
    _, target, *variables = command.split()
    assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), command
    for variable in variables:
        assert re.search(rf"^{variable.partition('=')[0]} +\?=", MAKEFILE, re.MULTILINE), command


def assert_python_is_new_enough(version: str) -> None:
    assert SpecifierSet(PROJECT["requires-python"]).contains(version), version


# ---------------------------------------------------------------- the files


def test_the_table_of_environments_names_files_that_are_there() -> None:
    text = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")
    rows = [line.split("|")[2] for line in text.splitlines() if line.startswith("| ")][1:]
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert all(list(ROOT.glob(name)) for name in named), named
    files = [*DEV_CONTAINERS, *DOCKERFILES, WORKFLOW, ROOT / "containers" / "nbgrader_config.py"]
    assert {str(path.relative_to(ROOT)) for path in files} <= named


@pytest.mark.parametrize("path", DEV_CONTAINERS, ids=lambda path: path.parent.name)
def test_a_dev_container_sets_up_with_make_and_opens_notebooks_in_what_that_made(path: Path) -> None:
    settings = json_with_comments(path)
    image = re.fullmatch(r"mcr\.microsoft\.com/devcontainers/python:(\d\.\d+)-bookworm", settings["image"])
    assert image
    assert_python_is_new_enough(image[1])
    assert_make_knows(settings["postCreateCommand"])
    python = settings["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"]
    assert python == "${containerWorkspaceFolder}/.venv/bin/python"


def test_one_dev_container_alone_asks_for_a_gpu() -> None:
    asking = [
        path.parent.name
        for path in DEV_CONTAINERS
        if "--gpus=all" in json_with_comments(path).get("runArgs", ())
    ]
    assert asking == ["gpu"]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
def test_an_image_copies_what_is_there_and_sets_up_with_make_as_no_administrator(path: Path) -> None:
    steps = dockerfile(path)
    (base,) = (argument for name, argument in steps if name == "FROM")
    assert_python_is_new_enough(base.removeprefix("python:").partition("-")[0])
    for name, argument in steps:
        if name == "COPY":
            sources = [word for word in argument.split() if not word.startswith("--")][:-1]
            assert all((ROOT / source).exists() for source in sources), argument
        elif name == "RUN" and argument.startswith("make"):
            assert_make_knows(argument)
    assert [argument for name, argument in steps if name == "USER"][-1] not in ("root", "0")


def test_the_students_image_has_no_solutions_and_no_judge() -> None:
    copied = " ".join(
        a for name, a in dockerfile(ROOT / "containers" / "jupyterhub.Dockerfile") if name == "COPY"
    )
    assert not {"solutions", "grading", "."} & set(copied.split())


def test_images_get_nothing_that_belongs_to_a_class() -> None:
    left_out = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    private = [
        line
        for line in (ROOT / ".gitignore").read_text("utf-8").splitlines()
        if line.startswith(("grading/", "labs/"))
    ]
    assert {line.rstrip("/") for line in private} <= {*left_out, "grading/release"}


def test_the_workflow_runs_targets_that_make_has_and_keeps_strangers_from_the_gpu() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    makes = [step.split(' ARGS="')[0] for step in steps if step.startswith("make")]
    assert {step.split()[1] for step in makes} == {"check", "test", "setup"}
    for step in makes:
        assert_make_knows(step)
    for version in workflow["jobs"]["tests"]["strategy"]["matrix"]["python"]:
        assert_python_is_new_enough(version)
    assert "github.event_name != 'pull_request'" in workflow["jobs"]["gpu"]["if"]


def test_binders_python_is_one_that_the_course_runs_on() -> None:
    runtime = (ROOT / "binder" / "runtime.txt").read_text().strip()
    assert_python_is_new_enough(runtime.removeprefix("python-"))


# ---------------------------------------------------------------- what pip resolves


CU13 = ("-c", "constraints.txt", "-c", "constraints-compiler.txt")
CU12 = ("-c", "constraints.txt")
WITH_CU13 = sorted(PROJECT["optional-dependencies"].keys() - {"cu12", "cu13", "cupy12"})


@pytest.fixture(scope="module")
def pip(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python with the pip that `make setup` brings."""
    python = fresh_python(tmp_path_factory.mktemp("pip"))
    run(python, "-m", "pip", "install", "-q", "--upgrade", "-c", "constraints.txt", "pip", cwd=ROOT)
    return python


@pytest.mark.slow
@patient
@pytest.mark.parametrize(
    ("extras", "pins", "cuda"),
    [
        ("cu13", CU13, "13"),
        ("cu12,cupy12", CU12, "12"),
        *((f"cu13,{extra}", CU13, "13") for extra in WITH_CU13),
    ],
)
def test_every_extra_resolves_to_the_tested_compiler_for_one_cuda(
    extras: str, pins: tuple[str, ...], cuda: str, pip: str, tmp_path: Path
) -> None:
    found = resolved(pip, tmp_path / "report.json", *pins, f".[{extras}]")
    assert found["numba-cuda"].startswith("0.30.")
    assert found["cuda-toolkit"].startswith(f"{cuda}.")
    other = "12" if cuda == "13" else "13"
    of_both = "nvidia-cutlass-dsl-libs-"  # CuTe DSL brings its own runtime, and CUDA 12's always
    named = (name for name in found if not name.startswith(of_both))
    assert not [name for name in named if name.endswith((f"-cu{other}", f"-cuda{other}x"))]
    if "torch" in extras:
        assert found["torch"].startswith("2.13.")


@pytest.mark.slow
@patient
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_package_has_a_wheel_for_both_processors_and_each_python(
    machine: str, python: str, pip: str, tmp_path: Path
) -> None:
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["cu13"]]
    platforms = [f"--platform=manylinux{kind}_{machine}" for kind in ("2014", "_2_17", "_2_28", "_2_34")]
    target = ("--target", str(tmp_path), "--only-binary=:all:", f"--python-version={python}", *platforms)
    found = resolved(pip, tmp_path / "report.json", *CU13, *target, *wanted)
    assert {"numba-cuda", "nvidia-nvvm", "jupyterlab"} <= found.keys()


@pytest.mark.slow
@patient
@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_the_course_without_extras_works_on_another_python(version: str, tmp_path: Path) -> None:
    if (python := other_python(version)) is None:
        pytest.skip(f"no Python {version} here")
    clone = copy_of_checkout(tmp_path / "clone")
    run("make", "setup", f"PYTHON={python}", "EXTRAS=none", cwd=clone)
    own = str(clone / ".venv" / "bin" / "python")
    assert f'"found": "{version}.' in run(own, "-m", "gpulab", "doctor", "--json", cwd=clone)
    for name in ("00_start_here", "03_cuda_with_numba", "04_memory_hierarchy"):
        execute(name, own, tmp_path)


# ---------------------------------------------------------------- Binder


@pytest.fixture(scope="module")
def binder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A clone and a Python with what `binder/requirements.txt` names, which pip reads from the clone's root."""
    clone = copy_of_checkout(tmp_path_factory.mktemp("binder"))
    python = fresh_python(clone.parent / f"{clone.name}-python")
    run(python, "-m", "pip", "install", "-q", "-r", "binder/requirements.txt", cwd=clone)
    return clone, python


@pytest.mark.slow
@patient
def test_binders_environment_passes_its_own_last_step_and_is_a_light_one(binder: tuple[Path, str]) -> None:
    clone, python = binder
    path = os.pathsep.join([str(Path(python).parent), os.environ["PATH"]])
    assert "The labs can be done here." in run("bash", "binder/postBuild", cwd=clone, PATH=path)
    assert (
        not {"torch", "triton", "cupy-cuda13x", "nbgrader", "nvidia-cutlass-dsl", "cuda-tile"}
        & installed(python).keys()
    )


@pytest.mark.slow
@patient
@pytest.mark.parametrize("name", ON_BINDER)
def test_a_notebook_runs_within_binders_limits(name: str, binder: tuple[Path, str], tmp_path: Path) -> None:
    run_within_limits(name, binder[1], tmp_path)


@pytest.mark.slow
@patient
@pytest.mark.parametrize("name", SHORT_PATH_WITH_PYTORCH)
def test_the_rest_of_the_short_path_runs_within_the_same_limits_where_pytorch_is(
    name: str, tmp_path: Path
) -> None:
    run_within_limits(name, sys.executable, tmp_path)


def run_within_limits(name: str, python: str, tmp_path: Path) -> None:
    """Run a notebook with its solutions on one core, in BINDERS_MEMORY."""
    if why := cgroup.obstacle():
        pytest.skip(why)
    core = str(min(os.sched_getaffinity(0)))
    with cgroup.joined_through(processes=200, memory=BINDERS_MEMORY) as groups:
        join = ("sh", "-c", "".join(f"echo $$ > {group}; " for group in groups) + 'exec "$@"', "sh")
        execute(name, python, tmp_path, *join, "taskset", "-c", core)
        peaks = ("memory.peak", "memory.max_usage_in_bytes")  # of version 2 and 1 of control groups
        (peak,) = (
            int(file.read_text()) for group in groups for p in peaks if (file := group.with_name(p)).exists()
        )
    print(f"{name}: {peak / 1e9:.2f} GB")
    assert 0 < peak <= BINDERS_MEMORY


def execute(name: str, python: str, folder: Path, *before: str) -> None:
    """Run a notebook with its solutions from top to bottom; `before` stands before the command."""
    nbformat.write(solved(SOURCES[name]), folder / f"{name}.ipynb")
    convert = ("-m", "nbconvert", "--to", "notebook", "--execute", "--ExecutePreprocessor.timeout=600")
    run(*before, python, *convert, "--inplace", f"{name}.ipynb", cwd=folder)
    cells = nbformat.read(folder / f"{name}.ipynb", 4).cells
    assert [c for c in cells if c.cell_type == "code"][-1].execution_count


# ---------------------------------------------------------------- Colab and Kaggle


THERE = {
    "torch": "2.8.0+cu126",
    "cupy-cuda12x": "13.3.0",
    "triton": "3.4.0",
}  # stand-ins: the real ones are large
REAL = ("numpy==2.0.2", "numba==0.60.0", "nvidia-cuda-nvrtc-cu12==12.6.77", "nvidia-nvjitlink-cu12==12.6.85")
USE = """
import torch, cupy, numba, numpy
import gpulab
from gpulab import cuda
from gpulab.doctor import CHECKS, diagnose
print(diagnose([check for check in CHECKS if check.needed]).to_json())
"""


@pytest.mark.slow
@patient
@pytest.mark.parametrize("variable", ["COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE"])
def test_a_hosted_notebook_gets_gpulab_and_keeps_its_own(variable: str, tmp_path: Path) -> None:
    python = fresh_python(tmp_path / "hosted")
    modules = {"cupy-cuda12x": "cupy"}
    wheels = [stand_in(tmp_path, name, version, modules.get(name, name)) for name, version in THERE.items()]
    run(python, "-m", "pip", "install", "-q", "pip==24.1.2", *REAL, *wheels, cwd=tmp_path)
    before = installed(python)

    clone = copy_of_checkout(
        tmp_path / "clone", "pyproject.toml", "README.md", "LICENSE", "gpulab", "grading"
    )
    cell = tmp_path / "cell.py"
    cell.write_text(INSTALL.replace("PACKAGE", clone.as_uri()) + USE)
    said = run(python, str(cell), cwd=tmp_path, **{variable: "release"})
    diagnosis = json.loads(said[said.index('{\n  "gpulab"') : said.rindex("}") + 1])
    assert diagnosis["ok"], diagnosis

    after = installed(python)
    kept = [name for name in before if name.startswith(("torch", "cupy", "triton", "numpy", "nvidia"))]
    assert len(kept) == 6
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert after["numba"] != before["numba"] and after["cuda-toolkit"].startswith("12.6.")


# ---------------------------------------------------------------- JupyterHub


@pytest.mark.slow
@patient
def test_the_students_image_can_be_made_of_what_it_copies(tmp_path: Path) -> None:
    steps = dockerfile(ROOT / "containers" / "jupyterhub.Dockerfile")
    copied = [word for name, argument in steps if name == "COPY" for word in argument.split()[:-1]]
    folder = copy_of_checkout(tmp_path, *copied)
    defaults = dict(argument.partition("=")[::2] for name, argument in steps if name == "ARG")
    (make,) = (argument for name, argument in steps if name == "RUN" and argument.startswith("make"))
    run("bash", "-c", make, cwd=folder, **defaults)
    said = run(str(folder / ".venv" / "bin" / "gpulab"), "doctor", cwd=folder)
    assert "The labs can be done here." in said
    assert "nbgrader" in installed(str(folder / ".venv" / "bin" / "python"))
