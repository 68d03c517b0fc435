"""Runs Triton's tutorials, those of Gluon among them, by ``gpulab run``, and publishes how they did.

``python -m tests.conformance.triton_tutorials FOLDER`` with a checkout of github.com/triton-lang/triton runs
all of them, ``--only NAME`` those whose path has NAME in it. What came out is kept in
docs/conformance/triton_tutorials.json, and docs/conformance/triton_tutorials.md is written from that, so a few
can be run again alone. The files are as they are, but that what they would do as a program (measure times) is
replaced by calls of their own checks, at sizes for a simulator.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from tests.conformance.tile_languages import REPOSITORY, run
from tests.conformance.tile_programs import Program

PAGE = REPOSITORY / "docs" / "conformance" / "triton_tutorials.md"
KEPT = PAGE.with_suffix(".json")
PROGRAM = (r"__name__ == ['\"]__main__['\"]", "False")  # what a tutorial does by itself is not run


@dataclass(frozen=True)
class Tutorial:
    """A tutorial at `path`, on a simulated `gpu`. `calls` are added at its end; `smaller` and `fails` are as
    in `Program`. `mended` says what `smaller` puts right in a tutorial that is wrong by itself."""

    path: str
    gpu: str
    calls: str
    smaller: tuple[tuple[str, str], ...] = field(default=())
    fails: str = ""
    mended: str = ""

    def program(self) -> Program:
        """The program that is run."""
        calls = (r"\Z", "\n" + self.calls.replace("\\", r"\\") + "\n")
        quiet = () if self.path.startswith("08-") else (PROGRAM,)
        return Program(self.path, smaller=(*quiet, *self.smaller, calls), fails=self.fails, gpu=self.gpu)

    @property
    def key(self) -> str:
        """Its name in the file of results."""
        return f"{self.path} on {self.gpu}" + (f", {self.mended}" if self.mended else "")


SIZES = tuple((rf"group_{x} = \[\d.*\]", f"group_{x} = [128, 64, 256, 128]") for x in "mnk")
ADDRESSES = "finds its tensors by a table of addresses, and a tensor of the CPU has another one on the GPU"
IMAGES = (
    "test_tma_im2col_simple()\ntest_tma_im2col_padded()\ntest_tma_im2col_offset()\n"
    "test_tma_im2col_multi_batch()\ntest_tma_im2col_multi_batch_padded()\n"
    "test_conv2d_tma_im2col(1, 16, 16, 64, 64, 3, 3, 1, 1)\n"
    "test_conv2d_tma_im2col(4, 16, 16, 96, 96, 3, 3, 2, 1)"
)
REFILLED = (
    "fills its tiles again before it waits for the product that reads them: `gpulab run --sanitize` names the "
    "lines. On a GPU the product may be done before the copy comes"
)
WAITS_FIRST = ((r"(?m)^( +)mbarrier\.expect\(tma_bar", r"\1mma = mma.wait_num_outstanding(0)\n\g<0>"),)
WAITING = "which waits before it fills them"
TUTORIALS = (
    Tutorial("06-fused-attention.py", "H100", 'test_op(1, 2, 128, 64, True, False, "bwd", "triton-fp16")'),
    Tutorial("08-grouped-gemm.py", "H100", "", (*SIZES, (r"(?m)^benchmark_.*run\(.*$", "")), ADDRESSES),
    Tutorial("09-persistent-matmul.py", "H100", "validate(128, 128, 64, torch.float16)"),
    Tutorial("11-programmatic-dependent-launch.py", "H100", "validate(23333)"),
    Tutorial("gluon/01-intro.py", "H100", "test_copy_scalar()\ntest_memcpy(64, 500)"),
    Tutorial(
        "gluon/02-layouts.py",
        "H100",
        "test_memcpy_1d(128, 1000, 4)\ntest_memcpy_2d(128, 256, 100, 300, True, 4)\n"
        "test_memcpy_2d_inout(300, 400, True, False)",
    ),
    Tutorial(
        "gluon/03-async-copy.py",
        "H100",
        "test_memcpy_1d_cpasync(1000, 256)\ntest_elementwise_add_cpasync(100, 200, 32, 32)\n"
        "test_elementwise_add_pipelined(400, 120, 32, 64, 2)",
    ),
    Tutorial(
        "gluon/04-tma.py",
        "H100",
        "test_tma_message_passing(16)\ntest_memcpy_1d_tma(64, 500)\n"
        "test_elementwise_add_pipelined(400, 120, 32, 64, 3)",
    ),
    Tutorial(
        "gluon/05-wgmma.py",
        "H100",
        "test_small_mma(64, 256, 128, True, 64, 4)\ntest_small_mma(64, 32, 32, False, 16, 8)\n"
        "test_blocked_matmul(208, 416, 304, 64, 64, 64, True, 4)\n"
        "test_blocked_matmul_pipelined(208, 416, 304, 128, 128, 128, 8)",
    ),
    Tutorial(
        "gluon/07-persistence.py",
        "H100",
        "test_persistent_matmul(208, 416, 304, 128, 256, 64, 3, 8, schedulers[0])\n"
        "test_persistent_matmul_pipelined(208, 416, 304, 64, 64, 64, 3, 4, schedulers[-1])",
    ),
    Tutorial(
        "gluon/08-warp-specialization.py",
        "H100",
        "test_elementwise_add_warp_specialized(400, 120, 32, 64, 2, 2, 4)",
    ),
    Tutorial("gluon/13-conv-im2col.py", "H100", IMAGES, fails=REFILLED),
    Tutorial("gluon/13-conv-im2col.py", "H100", IMAGES, WAITS_FIRST, mended=WAITING),
    Tutorial("gluon/14-multicta.py", "H100", "test_multicta_softmax_f32(64, 256)\ntest_tma_multicast_copy()"),
    Tutorial("06-fused-attention.py", "B200", 'test_op(1, 2, 128, 64, True, True, "bwd", "triton-fp16")'),
    Tutorial("09-persistent-matmul.py", "B200", "validate(128, 128, 64, torch.float16)"),
    Tutorial(
        "10-block-scaled-matmul.py",
        "B200",
        'for kind in ("mxfp4", "nvfp4", "mxfp8"):\n    validate_block_scaled(256, 256, 256, block_scale_type=kind)',
    ),
    Tutorial(
        "gluon/06-tcgen05.py",
        "B200",
        "test_tmem_example_kernel(128, 64, 4)\ntest_small_mma(128, 128, 128, True, True, 4)\n"
        "test_small_mma(64, 256, 256, False, False, 8)\n"
        "test_blocked_matmul(208, 416, 304, 64, 64, 64, True, 4)\n"
        "test_blocked_matmul_pipelined(208, 416, 304, 128, 128, 128, 4)",
    ),
    Tutorial(
        "gluon/08-warp-specialization.py",
        "B200",
        "test_matmul_warp_specialized(208, 416, 304, 128, 256, 64, 3, 4, 4, t7.schedulers[0])",
    ),
    Tutorial(
        "gluon/09-tma-gather-scatter.py",
        "B200",
        "test_async_gather(8, 16, 48, torch.bfloat16, 1024, 1024, None)\n"
        "test_async_gather(128, 128, -16, torch.float32, 1024, 1024, None)\n"
        "test_async_scatter(8, 128, 48, torch.float32, 1024, 1024, None)",
    ),
    Tutorial(
        "gluon/10-tcgen05-copy.py",
        "B200",
        "test_tcgen05_copy_nvmma_shared(*configs[-1], torch.float32, 32)\n"
        "test_matmul_accumulate(256, 256, 256, 128, 128, 64, 3, torch.float16)",
    ),
    Tutorial(
        "gluon/11-tcgen05-mma-scaled.py",
        "B200",
        'test_simple_mma_scaled(256, 256, 512, "nvfp4", "nvfp4", 128, 128)',
    ),
    Tutorial("gluon/12-cluster-launch-control.py", "B200", "test_op(256, 256, 256, True)"),
    Tutorial("gluon/13-conv-im2col.py", "B200", IMAGES, WAITS_FIRST, mended=WAITING),
    Tutorial("gluon/14-multicta.py", "B200", "test_two_cta_tcgen05()\ntest_tma_tcgen05()"),
)


def page(kept: dict[str, dict[str, object]]) -> str:
    """The published page."""
    ran = [(tutorial, kept[tutorial.key]) for tutorial in TUTORIALS if tutorial.key in kept]
    right = sum(bool(found["right"]) for _, found in ran)
    text = [
        "# Triton's tutorials",
        "",
        "The tutorials of Triton's repository, those of Gluon among them, run by `gpulab run` on a simulated GPU.",
        "Their files are as they are, but that calls of their own checks at small sizes take the place of what",
        "measures times, and that one is run with a mistake mended, too.",
        "Written by `python -m tests.conformance.triton_tutorials`.",
        "",
        f"{right} of the {len(ran)} that were run are right.",
        "",
        "| tutorial | GPU | result | Triton | processor time |",
        "|---|---|---|---|---|",
    ]
    for tutorial, found in ran:
        name = tutorial.path + (f", {tutorial.mended}" if tutorial.mended else "")
        result = "right" if found["right"] else tutorial.fails or str(found["said"]).replace("|", "/")
        text.append(f"| {name} | {tutorial.gpu} | {result} | {found['triton']} | {found['seconds']} s |")
    if rest := [tutorial for tutorial in TUTORIALS if tutorial.key not in kept]:
        text += [
            "",
            "Not run to their end yet:",
            "",
            *(f"- {tutorial.path}, on the {tutorial.gpu}" for tutorial in rest),
        ]
    return "\n".join(text) + "\n"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="run those whose path and GPU have this in them")
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for tutorial in TUTORIALS:
        if options.only not in tutorial.key:
            continue
        outcome = run(tutorial.program(), options.folder / "python" / "tutorials")
        kept[tutorial.key] = {
            "right": outcome.right,
            "said": outcome.said,
            "seconds": round(outcome.seconds),
            "triton": version("triton"),
        }
        print("right" if outcome.right else "WRONG", tutorial.key, outcome.said, flush=True)
        KEPT.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
        PAGE.write_text(page(kept), encoding="utf-8")


if __name__ == "__main__":
    main()
