"""Notebooks with their solutions, run. A run is kept until the notebook or gpulab changes."""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from traitlets.config import Config

ROOT = Path(__file__).resolve().parents[2]
CELL_SECONDS = 300
KEY = "run"


class RunFailed(Exception):
    """A notebook that does not run to its end; says which, where and why."""


@cache
def _of_gpulab() -> bytes:
    """Changes with anything in gpulab/ and with how notebooks are run."""
    files = [
        p
        for p in (ROOT / "gpulab").rglob("*")
        if p.suffix in (".py", ".toml", ".json", ".cuh", ".js", ".css")
    ]
    files += [Path(__file__).with_name(name) for name in ("runs.py", "figures.py", "masks.py")]
    every = hashlib.sha256()
    for path in sorted(files):
        every.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return every.digest()


def run(name: str, notebook: NotebookNode, secrets: list[str], folder: Path, keep: bool) -> NotebookNode:
    """The notebook with its outputs, from `folder` if it was run before; `keep` takes any run of it.

    No figure has one of the lines `secrets` in it. Raises RunFailed.
    """
    cells = "\0".join(f"{cell.cell_type}\0{cell.source}" for cell in notebook.cells)
    key = hashlib.sha256(_of_gpulab() + cells.encode() + "\0".join(secrets).encode()).hexdigest()
    kept = folder / f"{name}.ipynb"
    if kept.exists():
        before = nbformat.read(kept, as_version=4)
        if keep or before.metadata.get(KEY) == key:
            return before
    print(f"site: running {name}", flush=True)
    ran = _execute(name, notebook.copy(), secrets)
    ran.metadata[KEY] = key
    folder.mkdir(parents=True, exist_ok=True)
    fresh = kept.with_suffix(f".{os.getpid()}")
    nbformat.write(ran, fresh)
    os.replace(fresh, kept)  # another build may read it
    return ran


def _execute(name: str, notebook: NotebookNode, secrets: list[str]) -> NotebookNode:
    first = new_code_cell(f"from tools.site import figures\nfigures.hide({secrets!r})\ndel figures")
    notebook.cells = [first, *notebook.cells]
    # Everywhere the same: no GPU of this machine, no settings and no progress of whoever builds.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GPULAB_", "MPL"))}
    with tempfile.TemporaryDirectory(prefix="gpulab-site-") as place:
        labs = Path(place, "labs")
        labs.mkdir()
        environment |= {
            "GPULAB_SIMULATE": "1",
            "GPULAB_PROGRESS": str(labs / "progress.json"),
            "PYTHONPATH": str(ROOT),
        }
        # Over TCP every kernel warns of eavesdroppers.
        local = Config({"KernelManager": {"transport": "ipc", "ip": str(Path(place, "kernel"))}})
        resources = {"metadata": {"path": str(labs)}}
        client = NotebookClient(notebook, timeout=CELL_SECONDS, resources=resources, config=local)
        try:
            client.execute(env=environment)
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise RunFailed(f"{name} does not run to its end:\n{error}") from error
    notebook.cells = notebook.cells[1:]
    return notebook
