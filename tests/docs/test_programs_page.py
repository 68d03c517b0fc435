"""The page on running one's own programs names options, commands and faces that there are."""

from __future__ import annotations

import re
from pathlib import Path

from gpulab import habits
from gpulab.app import cli

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "programs.md").read_text(encoding="utf-8")


def test_every_option_on_the_page_is_one_of_the_command() -> None:
    known = {flag for flag, _ in cli.COMMANDS["run"].arguments}
    used = set(re.findall(r"gpulab run ([^\n`]*)", PAGE))
    words = {word.partition("=")[0] for line in used for word in line.split()}
    flags = {word for word in words if word.startswith("--")} - {"--epochs"}
    assert flags and flags <= known
    assert {"--sanitize", "--budget", "--write-budget", "--gpu"} <= flags


def test_every_package_that_has_a_face_is_on_the_page() -> None:
    assert all(f"`{package}`" in PAGE for package in habits.FACES)
