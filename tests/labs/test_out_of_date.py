"""Names that a library or its documentation has given up stand in the labs only where the text says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXTS = [
    *sorted((ROOT / "solutions").glob("*/*.py")),
    *sorted((ROOT / "gpulab" / "content").rglob("*.py")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
# What was given up, what has taken its place, and how a sentence begins or ends that may still name it.
NAMES = (
    ("cuda-c-programming-guide", "docs.nvidia.com/cuda/cuda-programming-guide", ()),
    ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", ()),
    ("torch_dtype=", "dtype=", ()),
    ("allow_tf32", 'fp32_precision = "tf32"', ("2.9 the switch was called",)),
    ("torch.cuda.amp", "torch.amp", ("The old one,", "Both are deprecated")),
    ("torch.distributed.pipeline.sync", "torch.distributed.pipelining", ("was removed",)),
    (
        "nvprof",
        "Nsight Systems and Nsight Compute",
        ("is gone", "Use nvprof", "nvprof is deprecated", "does not support", "transition guide"),
    ),
)
# These pages say what of PyTorch a program may use, which includes what is old.
LISTS = {"programs.md"}


@pytest.mark.parametrize(("old", "new", "said"), NAMES, ids=[old for old, _, _ in NAMES])
def test_an_old_name_stands_only_where_it_is_called_old(old: str, new: str, said: tuple[str, ...]) -> None:
    stray = []
    for path in TEXTS:
        if path.name in LISTS:
            continue
        text = re.sub(r"\n# ?", " ", path.read_text(encoding="utf-8"))
        for found in re.finditer(re.escape(old), text):
            around = text[max(0, found.start() - 120) : found.end() + 120]
            if not any(words in around for words in said):
                stray.append(f"{path.relative_to(ROOT)}: …{around[80:-60]}…")
    assert not stray, f"write {new!r}:\n" + "\n".join(stray)
