"""The published table of features: every program is in it, and the README counts what the page says."""

from __future__ import annotations

import re

import pytest

from tests.conformance import features


def test_every_program_names_its_feature_and_is_on_the_page() -> None:
    page = (features.PAGES / "features.md").read_text(encoding="utf-8")
    programs = [path for path in features.PROGRAMS.iterdir() if path.suffix in features.LANGUAGES]
    listed = re.findall(r"(?m)^\| (.*?) \| (\w+\.(?:cu|py)) \| ", page)
    assert sorted((features.header(path)["feature"], path.name) for path in programs) == sorted(listed)


def test_the_readme_has_the_sums_of_the_pages() -> None:
    page = (features.PAGES / "features.md").read_text(encoding="utf-8")
    outcomes = [
        features.Outcome(file, feature, "" if said == "right" else re.sub(r"\\([|\[])", r"\1", said))
        for feature, file, said in re.findall(r"(?m)^\| (.*?) \| (\w+\.(?:cu|py)) \| (.*) \|$", page)
    ]
    assert features.page(outcomes) == page
    assert features.table(outcomes) in features.README.read_text(encoding="utf-8")


def test_the_reason_of_a_refusal_is_its_own_words() -> None:
    fault = 'File "/a/b.py", line 3\nImportError: no jit in /x/y/cupyx.py'
    assert features.reason(fault) == "ImportError: no jit in cupyx.py"
    assert features.reason("copy, line 2: a[i] — the simulator does not know f. Use g.") == (
        "the simulator does not know f. Use g."
    )
    assert features.reason("") == ""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        "cupy_jit.py",
        "device_linking.cu",
        "function_pointers.cu",
        "recursion.cu",
        "textures.cu",
        "torch_compile.py",
        "training.py",
        "virtual_functions.cu",
    ],
)
def test_what_was_refused_once_runs_now(name: str) -> None:
    assert features.run(features.PROGRAMS / name).said == ""
