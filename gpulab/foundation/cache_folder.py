"""Where gpulab keeps what takes long to make or to fetch."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The user's folder for it, which may be missing: GPULAB_CACHE, else XDG_CACHE_HOME/gpulab, else
    ~/.cache/gpulab."""
    if named := os.environ.get("GPULAB_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpulab"
