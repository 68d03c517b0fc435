"""Shared memory is looked at for one block where all do the same: what is found must not depend on that."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from gpulab.simulator import simt
from gpulab.simulator.observe import Races
from gpulab.simulator.observe.uninitialised import Uninitialised
from tests.simt.drawing import seeds
from tests.simt.launching import kernel, launch

TILE = ".shared .align 16 .b8 tile[2048];"
TYPES = {"u32": 4, "u64": 8, "u16": 2}


class EachForItself(Races):
    """Looks at every block, and at every read at once."""

    def _is_done(self, access: simt.Access, kind: int) -> bool:
        self._tell_apart(access.chunk)
        return False


class EachRowForItself(Uninitialised):
    """Looks at every block and thread."""

    def _is_alike(self, access: simt.Access) -> bool:
        return False


def steps(generator: np.random.Generator) -> str:
    """Loads and stores of the tile at places that depend on the thread and at times on the block, for all
    threads or some, and barriers."""
    lines = [
        "mov.u32 %r1, tile; mov.u32 %r2, %ctaid.x; and.b32 %r9, %tid, 63;",
        "setp.lt.u32 %p1, %tid, 32; setp.eq.u32 %p2, %r2, 2;",
        "mov.u32 %r6, 7; mov.u64 %rd6, 7;",
    ]
    for _ in range(int(generator.integers(3, 12))):
        name = str(generator.choice(list(TYPES)))
        register = {"u32": "%r6", "u64": "%rd6", "u16": "%r6"}[name]
        guard = str(generator.choice(["", "", "", "@%p1 ", "@%p2 "]))
        turn = int(generator.choice([0, 0, 0, 1, 32]))
        by_block = "mad.lo.u32 %r3, %r2, 3, %r3;" if generator.random() < 0.15 else ""
        place = f"add.u32 %r3, %r9, {turn}; {by_block} and.b32 %r3, %r3, 63; "
        place += f"mad.lo.u32 %r3, %r3, {TYPES[name]}, %r1;"
        kind = generator.random()
        if kind < 0.3:
            lines.append("bar.sync 0;")
        elif kind < 0.4:
            lines.append("bar.warp.sync -1;")
        elif kind < 0.7:
            value = "%tid" if name == "u32" and generator.random() < 0.5 else register
            lines.append(f"{place} {guard}st.shared.{name} [%r3], {value};")
        else:
            lines.append(f"{place} {guard}ld.shared.{name} {register}, [%r3];")
    return "\n".join(lines)


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_one_block_looked_at_for_all_tells_the_same_as_every_block(seed):
    text = kernel(steps(np.random.default_rng(seed)), outside=TILE)
    quick, slow = (Races(), Uninitialised()), (EachForItself(), EachRowForItself())
    launch(text, {"out": np.zeros(1, np.uint32)}, 4, 64, observers=(*quick, *slow))
    for mine, theirs in zip(quick, slow, strict=True):
        assert [str(f) for f in mine.findings] == [str(f) for f in theirs.findings]
