"""PTX of a warpgroup that multiplies once, in every form of ``wgmma.mma_async``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .warpgroup_model import BITS

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
SHARED_BYTES = 64 << 10
PARAMETERS = ("image", "left", "c", "out", "metadata", "first", "second", "adds")


@dataclass(frozen=True)
class Form:
    """One form of the instruction."""

    n: int
    d: str
    a: str
    b: str
    held: bool = False  # A in registers
    sparse: bool = False
    negates: tuple[int, int] = (1, 1)
    mn_major: tuple[int, int] = (0, 0)
    saturates: bool = False
    selector: int = 0

    @property
    def stored(self) -> int:
        """Elements of a row of A, as it is stored."""
        return 256 // BITS[self.a]

    @property
    def k(self) -> int:
        return self.stored * (2 if self.sparse else 1)

    @property
    def registers(self) -> int:
        return self.n // (4 if self.d == "f16" else 2)

    @property
    def opcode(self) -> str:
        return (
            f"wgmma.mma_async{'.sp' * self.sparse}.sync.aligned.m64n{self.n}k{self.k}.{self.d}.{self.a}.{self.b}"
            + ".satfinite" * self.saturates
        )

    def text(self) -> str:
        d = "{" + ", ".join(f"%d{i}" for i in range(self.registers)) + "}"
        a = "{%a0, %a1, %a2, %a3}" if self.held else "%first"
        operands = [d, a, "%second"]
        if self.sparse:
            operands += ["%m", str(self.selector)]
        operands.append("%p")
        if self.d != "s32":
            operands += map(str, self.negates)
        if self.a in ("f16", "bf16"):
            operands += map(str, self.mn_major[1:] if self.held else self.mn_major)
        return f"{self.opcode} {', '.join(operands)};"


def kernel(form: Form, middle: str = "", waits: str = "wgmma.wait_group.sync.aligned 0;") -> str:
    """Each thread copies a part of `image` to shared memory and loads its registers; the warpgroup multiplies.

    `middle` stands between the product and the wait.
    """
    kind = "f32" if form.d == "f32" else "b32"
    loads = [f"ld.global.b32 %a{i}, [%wa+{4 * i}];" for i in range(4)]
    loads += [f"ld.global.{kind} %d{i}, [%wc+{4 * i}];" for i in range(form.registers)]
    stores = [f"st.global.{kind} [%wo+{4 * i}], %d{i};" for i in range(form.registers)]
    width = 4 * form.registers
    return "\n".join(
        [
            HEADER,
            ".extern .shared .align 1024 .b8 tile[];\n.visible .entry product_(",
            ",\n".join(f".param .u64 p_{name}" for name in PARAMETERS),
            ") {",
            ".reg .b64 %w<9>, %wa, %wc, %wo, %wm; .reg .b32 %t, %r<9>, %a<4>, %m; .reg .pred %p, %q;",
            f".reg .{kind} %d<{form.registers}>;",
            *(f".reg .b64 %{name};" for name in PARAMETERS),
            *(f"ld.param.u64 %{name}, [p_{name}];" for name in PARAMETERS),
            "mov.u32 %t, %tid.x; mov.u32 %r1, tile; shl.b32 %r2, %t, 2;",
            "LOOP:",
            "cvt.u64.u32 %w1, %r2; add.u64 %w2, %image, %w1; ld.global.b32 %r3, [%w2];",
            "add.u32 %r4, %r1, %r2; st.shared.b32 [%r4], %r3; add.u32 %r2, %r2, 512;",
            f"setp.lt.u32 %q, %r2, {SHARED_BYTES}; @%q bra LOOP;",
            "fence.proxy.async.shared::cta; bar.sync 0;",
            "mad.wide.u32 %wa, %t, 16, %left;",
            f"mad.wide.u32 %wc, %t, {width}, %c; mad.wide.u32 %wo, %t, {width}, %out;",
            "mad.wide.u32 %wm, %t, 4, %metadata; ld.global.b32 %m, [%wm];",
            *loads,
            "setp.ne.u64 %p, %adds, 0;",
            "wgmma.fence.sync.aligned;",
            form.text(),
            "wgmma.commit_group.sync.aligned;",
            middle,
            waits,
            *stores,
            "ret;",
            "}",
        ]
    )


def random_words(generator: np.random.Generator, count: int, type_: str) -> np.ndarray:
    """Bytes of `count` elements of a type, all finite and not too far from 1."""
    if type_ in ("s8", "u8"):
        return generator.integers(0, 256, count, np.uint8)
    if type_ == "e4m3":
        return (generator.integers(0, 0x7F, count) | generator.integers(0, 2, count) << 7).astype(np.uint8)
    if type_ == "e5m2":
        return (generator.integers(0, 0x7C, count) | generator.integers(0, 2, count) << 7).astype(np.uint8)
    values = generator.standard_normal(count) * 2.0 ** generator.integers(-6, 7, count)
    if type_ == "f16":
        return values.astype("f2").view(np.uint8)
    words = values.astype("f4").view("u4")
    return (words >> 16).astype("u2").view(np.uint8) if type_ == "bf16" else words.view(np.uint8)
