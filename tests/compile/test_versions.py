"""Which compiler is installed is known of wheels and of a CUDA Toolkit alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpulab.simulator.compile.versions import of_a_toolkit


@pytest.mark.parametrize(
    ("listed", "version"),
    [
        ({"cuda": {"version": "13.0.1"}, "libnvvm": {"version": "13.0.88"}}, "NVVM 13.0"),
        ({"cuda": {"version": "12.8.1"}, "cuda_nvcc": {"version": "12.8.93"}}, "NVVM 12.8"),
        ({"nsight_compute": {"version": "2025.3.1"}}, ""),
    ],
)
def test_a_toolkit_lists_its_versions(tmp_path: Path, listed: dict, version: str) -> None:
    library = tmp_path / "nvvm" / "lib64" / "libnvvm.so.4"
    (tmp_path / "version.json").write_text(json.dumps(listed))
    assert of_a_toolkit(library) == version


def test_a_library_outside_of_a_toolkit_has_no_version(tmp_path: Path) -> None:
    assert of_a_toolkit(tmp_path / "libnvvm.so.4") == ""
