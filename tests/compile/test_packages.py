"""Compilers that are packages of their own: absent, built otherwise, and here."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from gpulab.simulator.compile import cute_dsl, cutile
from gpulab.simulator.compile.packages import Internals, MissingCompiler
from gpulab.simulator.compile.versions import target_of

JSON = Internals("JSON", "numpy", ("1.0", "2.0"), "cute", ("json:JSONDecoder.decode", "json:loads"))


def test_a_package_that_has_all_that_is_used_is_taken_whatever_its_version() -> None:
    JSON.check()
    assert JSON.version


@pytest.mark.parametrize("place", ["json:JSONDecoder.gone", "json.gone:loads"])
def test_a_package_that_is_built_otherwise_is_refused_in_one_line_with_the_tested_versions(
    place: str,
) -> None:
    with pytest.raises(MissingCompiler) as refused:
        dataclasses.replace(JSON, used=(*JSON.used, place)).check()
    says = str(refused.value)
    assert "\n" not in says
    assert place.replace(":", ".") in says
    assert "Tested versions: 1.0, 2.0" in says and "pip install numpy==2.0" in says


@pytest.mark.parametrize(("face", "extra"), [("cutlass", "cute"), ("tile", "tile")])
def test_without_its_package_a_language_says_in_one_line_what_to_install(face: str, extra: str) -> None:
    hidden = (
        "from importlib import metadata\n"
        "real = metadata.version\n"
        "def version(name):\n"
        "    if name in ('nvidia-cutlass-dsl', 'cuda-tile'):\n"
        "        raise metadata.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "metadata.version = version\n"
    )
    code = f"{hidden}try:\n    import gpulab.{face}\nexcept ImportError as error:\n    print(error)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = ran.stdout.strip()
    assert said.count("\n") == 0
    assert f"pip install 'gpulab[{extra}]'" in said


@pytest.mark.parametrize(
    ("cc", "name"),
    [((8, 0), "sm_80"), ((8, 9), "sm_89"), ((9, 0), "sm_90a"), ((10, 0), "sm_100a"), ((12, 0), "sm_120a")],
)
def test_new_architectures_are_asked_for_with_all_that_only_they_have(cc: tuple[int, int], name: str) -> None:
    assert cute_dsl.architecture(cc) == name


@pytest.mark.parametrize(
    ("text", "cc"),
    [(".target sm_80", (8, 0)), (".target sm_90a, debug", (9, 0)), ("\t.target\tsm_120a", (12, 0))],
)
def test_ptx_says_what_it_is_for(text: str, cc: tuple[int, int]) -> None:
    assert target_of(f".version 9.5\n{text}\n") == cc


@pytest.mark.parametrize("package", [cute_dsl.PACKAGE, cutile.PACKAGE], ids=lambda package: package.name)
def test_the_installed_package_is_one_that_was_tested(package: Internals) -> None:
    if not package.version:
        pytest.skip(f"{package.name} is not installed")
    assert package.version in package.tested
