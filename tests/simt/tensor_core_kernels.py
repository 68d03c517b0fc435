"""PTX of blocks of 128 threads that use Tensor Memory and ask the tensor cores of Blackwell once."""

from __future__ import annotations

import numpy as np

from .launching import launch

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
SHARED_BYTES = 64 << 10
COLUMNS = 512
PARAMETERS = ("image", "before", "out", "first", "second", "descriptor", "adds")
WAIT = """
    AGAIN: mbarrier.try_wait.parity.shared.b64 %q, [%bar], 0; @!%q bra AGAIN;
    tcgen05.fence::after_thread_sync;"""


def kernel(ask: str, middle: str = "", waits: str = WAIT, group: int = 1, end: str = "") -> str:
    """Each block copies its `image` to shared memory, and `before` (128, 512) to Tensor Memory. Thread 0 of
    the first block runs `ask` and commits; all wait and write their Tensor Memory to `out`.

    %tmem is the address of the Tensor Memory, %bar that of the mbarrier, %first and %second are descriptors,
    %idesc is the instruction's, %p tells whether D is added to. `end` stands where warp 0 frees.
    """
    mask = "mov.u16 %all, 3;" if group == 2 else ""
    commit = (
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%bar], %all;"
        if group == 2
        else "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];"
    )
    meets = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if group == 2 else "bar.sync 0;"
    free = end or f"tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %tmem, 512;"
    return "\n".join(
        [
            HEADER,
            ".extern .shared .align 1024 .b8 tile[];",
            ".visible .entry product_(",
            ",\n".join(f".param .u64 p_{name}" for name in PARAMETERS),
            ") .explicitcluster {" if group == 2 else ") {",
            ".reg .b64 %w<9>; .reg .b16 %all; .reg .pred %p, %q, %lead;",
            ".reg .b32 %t, %r<9>, %v<9>, %tmem, %mine, %bar, %idesc, %block, %column, %n;",
            *(f".reg .b64 %{name};" for name in PARAMETERS),
            *(f"ld.param.u64 %{name}, [p_{name}];" for name in PARAMETERS),
            "mov.u32 %t, %tid.x; mov.u32 %block, %ctaid.x; cvt.u32.u64 %idesc, %descriptor;",
            "setp.ne.u64 %p, %adds, 0;",
            mask,
            f"mul.wide.u32 %w3, %block, {SHARED_BYTES}; add.u64 %image, %image, %w3;",
            f"mul.wide.u32 %w3, %block, {128 * COLUMNS * 4}; add.u64 %out, %out, %w3; add.u64 %before, %before, %w3;",
            "mov.u32 %r1, tile; shl.b32 %r2, %t, 2;",
            "COPY:",
            "cvt.u64.u32 %w1, %r2; add.u64 %w2, %image, %w1; ld.global.b32 %r3, [%w2];",
            "add.u32 %r4, %r1, %r2; st.shared.b32 [%r4], %r3; add.u32 %r2, %r2, 512;",
            f"setp.lt.u32 %q, %r2, {SHARED_BYTES}; @%q bra COPY;",
            f"add.u32 %bar, %r1, {SHARED_BYTES}; add.u32 %r5, %r1, {SHARED_BYTES + 8};",
            "setp.eq.u32 %q, %t, 0; @%q mbarrier.init.shared.b64 [%bar], 1;",
            "setp.ge.u32 %q, %t, 32; @%q bra ALLOCATED;",
            f"tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%r5], 512;",
            f"tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;",
            "ALLOCATED: fence.proxy.async.shared::cta; bar.sync 0;",
            "ld.shared.b32 %tmem, [%r5];",
            "and.b32 %mine, %t, 96; shl.b32 %mine, %mine, 16; add.u32 %mine, %mine, %tmem;",
            f"mul.wide.u32 %w3, %t, {COLUMNS * 4}; add.u64 %before, %before, %w3; add.u64 %out, %out, %w3;",
            "mov.u32 %column, 0; mov.u64 %w4, %before;",
            "FILL: ld.global.b32 %r3, [%w4]; add.u32 %r6, %mine, %column;",
            "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6], {%r3};",
            f"add.u64 %w4, %w4, 4; add.u32 %column, %column, 1; setp.lt.u32 %q, %column, {COLUMNS};",
            "@%q bra FILL;",
            "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;",
            meets,
            "tcgen05.fence::after_thread_sync;",
            "setp.eq.u32 %lead, %t, 0; setp.eq.u32 %q, %block, 0; and.pred %lead, %lead, %q; @!%lead bra ASKED;",
            ask,
            commit,
            "ASKED:",
            middle,
            waits,
            "mov.u32 %column, 0; mov.u64 %w4, %out;",
            "READ: add.u32 %r6, %mine, %column;",
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r6]; tcgen05.wait::ld.sync.aligned;",
            "st.global.b32 [%w4], %r3;",
            f"add.u64 %w4, %w4, 4; add.u32 %column, %column, 1; setp.lt.u32 %q, %column, {COLUMNS};",
            "@%q bra READ;",
            "bar.sync 0;",
            "setp.ge.u32 %q, %t, 32; @%q bra DONE;",
            free,
            "DONE: ret;",
            "}",
        ]
    )


def signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def run(text: str, image: np.ndarray, before: np.ndarray | None = None, **named) -> np.ndarray:
    """Tensor Memory behind the kernel, (blocks, 128, 512) uint32; `image` (blocks, bytes) is shared memory."""
    blocks = image.shape[0]
    shape = (blocks, 128, COLUMNS)
    arrays = {
        "image": image,
        "before": np.zeros(shape, np.uint32) if before is None else before,
        "out": np.zeros(shape, np.uint32),
        "first": signed(named.pop("first", 0)),
        "second": signed(named.pop("second", 0)),
        "descriptor": named.pop("descriptor", 0),
        "adds": int(named.pop("adds", False)),
    }
    cluster = {"cluster": (2, 1, 1)} if blocks == 2 else {}
    return launch(text, arrays, blocks, 128, shared_bytes=SHARED_BYTES + 16, **cluster, **named)["out"]


def shared_descriptor(start: int, leading: int, stride: int, span: int = 16) -> int:
    """Bytes → the 64 bits, from the figure in the PTX manual."""
    layout = {16: 0, 128: 2, 64: 4, 32: 6}[span]
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | layout << 61


def instruction_descriptor(
    m: int, n: int, d: int, a: int, b: int, negates: tuple[int, int] = (0, 0), mn_major: tuple[int, int] = (0, 0),
    saturates: int = 0,
) -> int:  # fmt: skip
    """Numbers of the types → the 32 bits, from the table in the PTX manual."""
    return (
        saturates << 3
        | d << 4
        | a << 7
        | b << 10
        | negates[0] << 13
        | negates[1] << 14
        | mn_major[0] << 15
        | mn_major[1] << 16
        | n >> 3 << 17
        | m >> 4 << 24
    )
