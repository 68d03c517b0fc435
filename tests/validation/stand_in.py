"""Makes the stand-in for NVIDIA's driver where there is none."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "stand_ins"


def driver(folder: Path) -> Path:
    """Compile it into a folder, for LD_LIBRARY_PATH; gives the folder. Skips where there is no C compiler."""
    compiler, toolkit = shutil.which("cc"), find_spec("nvidia")
    places = toolkit.submodule_search_locations if toolkit else None
    headers = [h for place in places or () for h in Path(place).rglob("cuda.h")]
    if not compiler or not headers:
        pytest.skip("no C compiler here, or no cuda.h: the stand-in for the driver cannot be made")
    command = [compiler, "-shared", "-fPIC", "-Wall", "-I", str(headers[0].parent)]
    made = str(folder / "libcuda.so.1")
    subprocess.run([*command, "-o", made, str(HERE / "driver.c"), "-ldl"], check=True)
    return folder
