"""Launch PTX written in a test: `kernel(body, …)` makes the text, `launch(text, arrays, …)` runs it."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from gpulab.simulator import ptx, simt

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = (
    ".reg .pred %p<16>;\n.reg .b16 %h<16>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<32>;\n"
    ".reg .f32 %f<16>;\n.reg .f64 %fd<16>;\n"
)


def kernel(body: str, parameters: str = "out", outside: str = "", declarations: str = "") -> str:
    """A module with one kernel.

    `parameters` are names of 64-bit parameters, each loaded into a register of its name; `outside` is text
    before the kernel, `declarations` text at its start. Registers %p, %h, %r, %rd, %f, %fd are there; %tid is
    the thread's place in the block and %at its place in the grid, both 32 bits, first dimension only.
    """
    names = parameters.split()
    return "\n".join(
        [
            HEADER,
            outside,
            ".visible .entry snippet(",
            ",\n".join(f".param .u64 p_{name}" for name in names),
            ") {",
            REGISTERS,
            *(f".reg .b64 %{name};" for name in names),
            ".reg .b32 %tid, %at;",
            declarations,
            *(f"ld.param.u64 %{name}, [p_{name}];" for name in names),
            "mov.u32 %tid, %tid.x;",
            "mov.u32 %r30, %ctaid.x;",
            "mov.u32 %r31, %ntid.x;",
            "mad.lo.s32 %at, %r30, %r31, %tid;",
            body,
            "ret;",
            "}",
        ]
    )


def element(array: str, index: str = "%at", size: int = 4, into: str = "%rd31") -> str:
    """The address of `array[index]` in a register."""
    return f"mad.wide.s32 {into}, {index}, {size}, %{array};"


def launch(
    text: str,
    arrays: dict[str, Any],
    grid: int | tuple[int, int, int] = 1,
    block: int | tuple[int, int, int] = 32,
    **options: Any,
) -> dict[str, np.ndarray]:
    """The arrays after one launch.

    `arrays` are the kernel's parameters in order: an array is copied to fresh memory and its address passed,
    an integer is passed as it is. `options` are those of `simt.launch`.
    """
    memory = options.pop("memory", None) or simt.Memory()
    values, places = [], {}
    for name, array in arrays.items():
        if isinstance(array, int):
            values.append(array)
            continue
        places[name] = memory.allocate(array.nbytes, name)
        places[name].data[:] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        values.append(places[name].address)
    program = simt.load(ptx.parse(text))
    shapes = [(s, 1, 1) if isinstance(s, int) else s for s in (grid, block)]
    simt.launch(program, *shapes, struct.pack(f"<{len(values)}q", *values), memory, **options)
    return {
        name: place.data.view(arrays[name].dtype).reshape(arrays[name].shape).copy()
        for name, place in places.items()
    }


SCHEDULES = {"lockstep": simt.LOCKSTEP, "warp after warp": simt.warp_serial(3)}
