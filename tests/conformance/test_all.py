"""`make conformance` writes every page that there is, and says what it leaves out."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from tests.conformance.__main__ import SUITES, command, missing
from tests.conformance.features import PAGES, README, REPOSITORY


def test_every_page_has_a_suite_that_writes_it_and_a_row_in_the_readme() -> None:
    pages = {path.stem for path in PAGES.glob("*.md")}
    assert pages == {suite.page for suite in SUITES}
    assert all(f"(docs/conformance/{page}.md)" in README.read_text(encoding="utf-8") for page in pages)


def test_a_suites_command_exists_and_gets_its_checkouts(tmp_path: Path) -> None:
    for name in ("triton", "HeCBench", "cutlass", "cutile-python"):
        (tmp_path / name).mkdir()
    for suite in SUITES:
        words = command(suite, tmp_path)[1:]
        assert find_spec(words[1]) if words[0] == "-m" else (REPOSITORY / words[0]).is_file()
        assert [str(tmp_path / name) in words for name in suite.needs] == [True] * len(suite.needs)
        assert not any("{" in word for word in words)


def test_what_has_no_checkout_is_left_out_in_words(tmp_path: Path) -> None:
    (tmp_path / "triton").mkdir()
    said = subprocess.run(
        [sys.executable, "-m", "tests.conformance", "--list", "--peers", str(tmp_path)],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "hecbench: left out, for there is no checkout of HeCBench." in said
    assert "tile_languages: left out, for there is no checkout of cutlass, cutile-python." in said
    assert f"triton_language: -m tests.conformance.triton_language {tmp_path / 'triton'}" in said
    assert [suite.page for suite in SUITES if not missing(suite, None)] == ["numba_cuda", "cupy", "features"]


def test_make_conformance_runs_it() -> None:
    said = subprocess.run(
        ["make", "-n", "conformance", "PEERS=/p", "ARGS=--list"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    ).stdout
    assert "-m tests.conformance --peers /p --list" in said
