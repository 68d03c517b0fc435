"""``setmaxnreg``: warps pass registers to each other, within what their block has."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from gpulab.simulator import ptx, simt
from gpulab.simulator.compile.ptxas import registers_at_entry, resources
from gpulab.simulator.hardware import find, occupancy
from gpulab.simulator.simt.errors import WrongRegisters

from .launching import SCHEDULES, element, kernel, launch

each_schedule = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)


def roles(first: str, others: str) -> str:
    """Warpgroup 0 runs `first`, all others run `others`; then each thread writes a 1."""
    return kernel(
        f"setp.ge.u32 %p1, %tid, 128; @%p1 bra OTHERS;\n{first}\nbra.uni DONE;\nOTHERS:\n{others}\nDONE:\n"
        f"mov.b32 %r1, 1; {element('out')} st.global.b32 [%rd31], %r1;"
    )


def change(action: str, count: int) -> str:
    return f"setmaxnreg.{action}.sync.aligned.u32 {count};"


def run(text: str, **options) -> np.ndarray:
    return launch(text, {"out": np.zeros(384, "i4")}, block=384, **options)["out"]


@each_schedule
@pytest.mark.parametrize("consumers_first", [False, True])
def test_consumers_take_what_the_producer_gives_back(consumers_first, schedule):
    """3 × 168 registers: one warpgroup keeps 24 and gives back 144, two take 72 more each."""
    parts = change("dec", 24), change("inc", 240)
    if not consumers_first:
        assert (run(roles(*parts), allotted=168, schedule=schedule) == 1).all()
    text = roles(parts[1], parts[0])  # 2 × 144 come back, of which one warpgroup takes 72
    assert (run(text, allotted=168, schedule=schedule) == 1).all()


@each_schedule
def test_one_register_too_many_is_never_got(schedule):
    with pytest.raises(simt.DivergentBarrier, match=r"(?s)80 more registers.*are left.*dec"):
        run(roles(change("dec", 24), change("inc", 248)), allotted=168, schedule=schedule)


@each_schedule
def test_registers_can_go_back_and_forth(schedule):
    lead = f"{change('dec', 24)}\nbar.sync 1, 384;\n{change('inc', 168)}"
    others = f"{change('inc', 240)}\n{change('dec', 168)}\nbar.sync 1, 384;"
    assert (run(roles(lead, others), allotted=168, schedule=schedule) == 1).all()


@pytest.mark.parametrize(
    "text, what",
    [(change("dec", 176), "gives back .* 176, but has 168"), (change("inc", 160), "takes .* 160")],
)
def test_the_wrong_direction_is_a_fault(text, what):
    with pytest.raises(WrongRegisters, match=what):
        run(kernel(text), allotted=168)


@pytest.mark.parametrize("count", [16, 100, 264])
def test_a_number_that_cannot_be_is_refused_in_words(count):
    with pytest.raises(
        simt.UnsupportedInstruction, match=f"multiple of 8 registers from 24 to 256, and not {count}"
    ):
        simt.load(ptx.parse(kernel(change("inc", count))))


def used_by_ptxas(text: str) -> int:
    """What the assembler itself says; linked in memory, as gpulab does it, it ignores setmaxnreg."""
    spec = importlib.util.find_spec("triton")
    assert spec is not None and spec.origin is not None
    ptxas = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "ptxas"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(text, encoding="utf-8")
        command = [ptxas, "-arch", "sm_90a", "-v", source, "-o", source.with_suffix(".cubin")]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    found = re.search(r"Used (\d+) registers", said)
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize(
    ("limits", "taken", "registers"),
    [
        (".reqntid 384 .maxnreg 168", 240, 168),
        (".maxntid 128, 3, 1 .minnctapersm 1", 240, 168),  # 65,536 registers / 384 threads, in steps of 8
        (".maxntid 128, 3, 1 .minnctapersm 1", 160, 160),
        (".reqntid 128 .minnctapersm 1", 240, 240),
        (".reqntid 128 .minnctapersm 1", 256, 255),
        (".reqntid 384", 240, None),  # ptxas cannot know and ignores setmaxnreg
    ],
)
def test_a_kernel_that_passes_registers_starts_with_all_that_it_may_have_and_take(limits, taken, registers):
    text = f"""
        .version 8.7
        .target sm_90a
        .address_size 64
        .visible .entry passes() {limits}
        {{
            .reg .b32 %r; .reg .pred %p;
            mov.u32 %r, %tid.x; setp.ge.u32 %p, %r, 128; @%p bra OTHERS;
            {change("dec", 24)} bra.uni DONE;
            OTHERS: {change("inc", taken)}
            DONE: ret;
        }}
        """
    assert registers_at_entry(text, "passes") == registers
    assert resources(text, (9, 0)).registers == (registers or 4)
    assert registers_at_entry(text, "passes", 40) == 40
    assert registers is None or used_by_ptxas(text) == registers
    if registers == 168:
        assert occupancy(find("H100"), 384, registers, 0).active_blocks == 1


def test_a_single_warp_may_say_what_it_has_already():
    """As in kernels of Triton whose roles take one warp."""
    lead = "setp.lt.u32 %p2, %tid, 32; @!%p2 bra REST;\n" + change("inc", 24) + "\nREST:"
    assert (run(roles(change("dec", 24) + lead, change("inc", 240)), allotted=168) == 1).all()


def test_nobody_counts_registers_whose_number_is_not_known():
    assert (run(roles(change("dec", 24), change("inc", 256))) == 1).all()
