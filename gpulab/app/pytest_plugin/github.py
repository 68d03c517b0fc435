"""What GitHub Actions shows beside the lines of a pull request: workflow commands in a job's output."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def wanted() -> bool:
    """Whether a job of GitHub Actions runs the tests."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def annotation(complaint: Mapping[str, Any], root: Path) -> str:
    """The command that puts a complaint beside its line; `root` is what its file is relative to."""
    file = (root / complaint["file"]).resolve()
    repository = Path(os.environ.get("GITHUB_WORKSPACE") or root).resolve()
    if file.is_relative_to(repository):
        file = file.relative_to(repository)
    properties = {"file": str(file), "line": str(complaint["line"]), "title": complaint["title"]}
    listed = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    return f"::error {listed}::{_escaped(complaint['message'])}"


def _escaped(text: str, more: str = "") -> str:
    """GitHub's own escapes: a command is one line, and its properties end at commas and colons."""
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text
