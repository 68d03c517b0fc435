"""What a released notebook gets where the course has a public address: links that open it elsewhere, and a
beginning of its import cell that installs gpulab there. Both are made here alone; sources are free of them.
"""

from __future__ import annotations

import ast
import re

from nbformat import NotebookNode

from gpulab.app.course.address import Address
from grading.core.notebooks import without_magics

# Colab and Kaggle set the two variables. Their PyTorch, CuPy and NumPy fit the GPU's driver and may be in use
# already: each is named to pip as it is there, so that pip keeps it or says why it cannot.
INSTALL = """\
# On Colab and Kaggle: install gpulab, and leave the PyTorch and CuPy that are there as they are.
import os

if os.environ.keys() & {"COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE"}:
    import importlib.util, site, subprocess, sys
    from importlib.metadata import distributions

    if importlib.util.find_spec("gpulab") is None:
        there = {d.name.lower().replace("_", "-"): d.version for d in distributions() if d.name}
        kept = ("torch", "cupy", "triton", "numpy", "nvidia-")
        keep = [f"{name}=={version}" for name, version in there.items() if name.startswith(kept)]
        cuda = "cu12" if any(name.endswith(("-cu12", "-cuda12x")) for name in there) else "cu13"
        wanted = f"gpulab[{cuda}] @ PACKAGE"
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", wanted, *keep], check=True)
        for folder in site.getsitepackages():  # as when Python starts: numba-cuda becomes numba.cuda
            site.addsitedir(folder)
        importlib.invalidate_caches()

"""

# What Binder's environment lacks (binder/requirements.txt), by what a notebook imports at its top level.
NOT_ON_BINDER = ("torch", "triton", "gpulab.triton", "gpulab.models", "gpulab.serving")


def open_elsewhere(notebook: NotebookNode, path: str, address: Address) -> NotebookNode:
    """Put links under the title and the installation before the imports.

    `path` is the notebook's in the repository. Nothing changes without an address. A page that leads to other
    notebooks, ``labs/index.ipynb``, gets no links: on Colab and Kaggle a notebook stands alone.
    """
    if not address:
        return notebook
    for cell in notebook.cells:
        if cell.cell_type == "code" and re.search(r"^gpulab\.start\(", cell.source, re.MULTILINE):
            cell.source = INSTALL.replace("PACKAGE", address.package) + cell.source
            break
    if path.count("/") > 1:
        title = notebook.cells[0]
        head, _, rest = title.source.partition("\n")
        title.source = f"{head}\n\n{links(notebook, path, address)}\n{rest}"
    return notebook


def links(notebook: NotebookNode, path: str, address: Address) -> str:
    """The line of links, in Markdown."""
    places = {"Colab": address.colab(path), "Kaggle": address.kaggle(path)}
    if runs_on_binder(notebook):
        places["Binder"] = address.binder(path)
    return "Open in " + " · ".join(f"[{name}]({link})" for name, link in places.items())


def runs_on_binder(notebook: NotebookNode) -> bool:
    """Whether it imports nothing at the top level that Binder's environment lacks."""
    imported: set[str] = set()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            imported |= _imported(cell.source)
    return not any(f"{name}.".startswith(f"{lacking}.") for name in imported for lacking in NOT_ON_BINDER)


def _imported(source: str) -> set[str]:
    """Names of modules that a cell's own lines import."""
    names: set[str] = set()
    for statement in ast.parse(without_magics(source)).body:
        if isinstance(statement, ast.Import):
            names |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            names |= {f"{statement.module}.{alias.name}" for alias in statement.names}
    return names
