"""Where CUDA's headers are."""

from __future__ import annotations

from functools import cache

# Whose folders of headers are searched. CUDA 12 keeps those of the compiler with nvcc.
HEADERS = ("cudart", "cccl", "curand", "nvcc")


@cache
def header_folders() -> tuple[str, ...]:
    """Where the CUDA headers of the installed wheels are: of the runtime, the C++ library, cuRAND."""
    from cuda import pathfinder

    found = {name: pathfinder.locate_nvidia_header_directory(name) for name in HEADERS}
    # A toolkit elsewhere on the machine may be of another version: its headers are the last resort.
    ours = [f.abs_path for f in found.values() if f and f.found_via == "site-packages"]
    others = [f.abs_path for name, f in found.items() if f and name != "nvcc" and f.abs_path not in ours]
    return tuple(dict.fromkeys([*ours, *others]))
