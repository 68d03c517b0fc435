"""The file of one GPU's measurements: JSON, written anew after every kernel, so that nothing is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from gpulab.foundation.errors import Message

FORMAT = 1
FOLDER = Path(__file__).parent / "measured"


class OtherMachine(Message):
    """The file holds measurements of another GPU, driver or compiler."""


def files() -> list[Path]:
    """All files of measurements that the clone has."""
    return sorted(FOLDER.glob("*.json"))


def load(path: Path) -> dict[str, Any]:
    """The measurements in a file. Raises ValueError for another format."""
    data = json.loads(path.read_text(encoding="utf-8"))
    if data.get("format") != FORMAT:
        raise ValueError(f"{path} holds no measurements of format {FORMAT}: measure again.")
    return dict(data)


def start(data: dict[str, Any]) -> float | None:
    """The seconds of a kernel that does nothing; None where that was not measured."""
    seconds = data.get("start", {}).get("median")
    return None if seconds is None else float(seconds)


def save(path: Path, data: dict[str, Any]) -> None:
    """Write the whole file in one step: whoever stops the program finds the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(beside, path)


def begun(path: Path, machine: dict[str, Any], again: bool) -> dict[str, Any]:
    """The measurements to go on with: those of the file, or none yet.

    Raises OtherMachine where the file is of another GPU, driver or compiler.
    """
    if again or not path.exists():
        return {"format": FORMAT, "machine": machine, "kernels": {}, "failed": {}}
    data = load(path)
    differ = [
        f"{name} {data['machine'].get(name)!r}, here {value!r}"
        for name, value in machine.items()
        if name in ("gpu", "driver", "compilers") and data["machine"].get(name) != value
    ]
    if differ:
        raise OtherMachine(
            f"{path} was measured with {'; '.join(differ)}. Measure all of it again with --again, or into "
            "another file with --out."
        )
    return data
