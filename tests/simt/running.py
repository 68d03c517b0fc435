"""Run snippets of PTX on every engine: `assert_runs(body, inputs, expected)`. Tests never choose an
engine."""

from __future__ import annotations

import struct

import numpy as np

from gpulab.simulator import ptx, simt

PTX_TYPE = {
    "i1": "s8",
    "u1": "u8",
    "i2": "s16",
    "u2": "u16",
    "i4": "s32",
    "u4": "u32",
    "i8": "s64",
    "u8": "u64",
}
PTX_TYPE |= {"f2": "b16", "f4": "f32", "f8": "f64"}
REGISTER = {1: ".b16", 2: ".b16", 4: ".b32", 8: ".b64"}
FLOAT_REGISTER = {"f4": ".f32", "f8": ".f64", "f2": ".b16"}


def _key(array: np.ndarray) -> str:
    return array.dtype.str[1:]


def _register(name: str, array: np.ndarray) -> str:
    key = _key(array)
    return f".reg {FLOAT_REGISTER.get(key, REGISTER[array.itemsize])} %{name};"


def snippet(body: str, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray], n: int) -> str:
    """A kernel: thread i loads element i of each input into %name, runs `body`, stores element i of each
    output."""
    names = [*inputs, *outputs]
    arrays = {**inputs, **outputs}
    lines = [".version 8.0", ".target sm_80", ".address_size 64", ".visible .entry snippet("]
    lines.append(",\n".join(f".param .u64 p_{name}" for name in names))
    lines += [
        ") {",
        ".reg .pred %p<8>, %out_of_range;",
        ".reg .b32 %i<4>, %t<16>;",
        ".reg .b64 %at, %base, %w<8>;",
    ]
    lines += [".reg .f32 %x<8>;", ".reg .f64 %y<8>;", ".reg .b16 %h<8>;"]
    lines += [_register(name, arrays[name]) for name in names]
    lines += ["mov.u32 %i0, %ctaid.x;", "mov.u32 %i1, %ntid.x;", "mov.u32 %i2, %tid.x;"]
    lines += [
        "mad.lo.s32 %i3, %i0, %i1, %i2;",
        f"setp.ge.s32 %out_of_range, %i3, {n};",
        "@%out_of_range bra END;",
    ]
    for name in inputs:
        lines += _place(name, arrays[name])
        lines.append(f"ld.global.{PTX_TYPE[_key(arrays[name])]} %{name}, [%at];")
    lines.append(body)
    for name in outputs:
        lines += _place(name, arrays[name])
        lines.append(f"st.global.{PTX_TYPE[_key(arrays[name])]} [%at], %{name};")
    lines += ["END:", "ret;", "}"]
    return "\n".join(lines) + "\n"


def _place(name: str, array: np.ndarray) -> list[str]:
    return [f"ld.param.u64 %base, [p_{name}];", f"mad.wide.s32 %at, %i3, {array.itemsize}, %base;"]


def run_numpy_engine(
    text: str, inputs: dict, outputs: dict, n: int, schedule: simt.Schedule
) -> dict[str, np.ndarray]:
    """Outputs by name after one launch of `text`."""
    memory = simt.Memory()
    places = {}
    for name, array in {**inputs, **outputs}.items():
        places[name] = memory.allocate(array.nbytes, name)
        if name in inputs:
            places[name].data[:] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
    program = simt.load(ptx.parse(text))
    arguments = struct.pack(f"{len(places)}q", *(p.address for p in places.values()))
    simt.launch(program, ((n + 63) // 64, 1, 1), (64, 1, 1), arguments, memory, schedule=schedule)
    return {
        name: places[name].data.view(array.dtype).reshape(array.shape).copy()
        for name, array in outputs.items()
    }


ENGINES = {
    "lockstep": lambda *a: run_numpy_engine(*a, simt.LOCKSTEP),
    "warp after warp": lambda *a: run_numpy_engine(*a, simt.warp_serial(7)),
}


def results(body: str, inputs: dict[str, np.ndarray], outputs: dict[str, np.dtype]) -> dict[str, np.ndarray]:
    """What `body` makes of `inputs` on the first engine."""
    n = len(next(iter(inputs.values())))
    blank = {name: np.zeros(n, dtype) for name, dtype in outputs.items()}
    return ENGINES["lockstep"](snippet(body, inputs, blank, n), inputs, blank, n)


def assert_runs(body: str, inputs: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """`body` computes `expected` from `inputs`, bit for bit, on every engine. Arrays are 1-D and equally
    long."""
    n = len(next(iter(inputs.values())))
    blank = {name: np.zeros(n, array.dtype) for name, array in expected.items()}
    text = snippet(body, inputs, blank, n)
    for engine, run in ENGINES.items():
        found = run(text, inputs, blank, n)
        for name, array in expected.items():
            same = found[name].view(f"u{array.itemsize}") == array.view(f"u{array.itemsize}")
            if not same.all():
                at = int((~same).argmax())
                given = {k: v[at] for k, v in inputs.items()}
                raise AssertionError(
                    f"{body} ({engine}): element {at} of {name} is {found[name][at]!r}, "
                    f"should be {array[at]!r}; inputs {given}; {int((~same).sum())} of {n} differ"
                )
