"""Records to draw, with everything in them that a scene can show."""

from __future__ import annotations

from gpulab.plot.moving import Array, KernelSteps, Step, Touch, Warp

ALL = [True] * 32
EVEN = [lane % 2 == 0 for lane in range(32)]
SOURCE = [
    (1, "@cuda.jit"),
    (2, "def neighbours(a, out):"),
    (3, "    tile = cuda.shared.array(64, np.float32)"),
    (4, "    t = cuda.threadIdx.x"),
    (5, "    tile[t] = a[t]"),
    (6, "    cuda.syncthreads()"),
    (7, "    if t % 2 == 0:"),
    (8, "        out[t] = tile[t] + tile[t + 1]"),
]


def neighbours() -> KernelSteps:
    """Two warps load a tile, meet at a barrier, and every second thread adds two cells: 10 steps, 3 arrays of 64."""

    def thread(warp: int) -> str:
        return f"thread {32 * warp}"

    def load(warp: int) -> Step:
        cells = range(32 * warp, 32 * warp + 32)
        values = [f"{i}.0" for i in cells]
        return Step(5, ALL, warp, [Touch("a", "read", cells), Touch("tile", "write", cells, values)])

    def add(warp: int) -> Step:
        cells = range(32 * warp, 32 * warp + 32, 2)
        values = [f"{2 * i + 1}.0" for i in cells]
        return Step(
            8,
            EVEN,
            warp,
            [
                Touch("tile", "read", cells),
                Touch("tile", "read", [i + 1 for i in cells]),
                Touch("out", "write", cells, values),
            ],
        )

    def number(warp: int) -> Step:
        return Step(4, ALL, warp, values={thread(warp): {"t": str(32 * warp)}})

    def even(warp: int) -> Step:
        return Step(7, ALL, warp, values={thread(warp): {"t % 2": "0"}})

    def wait(warp: int) -> Step:
        return Step(6, ALL, warp, mark="barrier")

    steps = [number(0), load(0), wait(0), number(1), load(1), wait(1), even(0), add(0), even(1), add(1)]
    arrays = [
        Array("a", (64,), [f"{i}.0" for i in range(64)], "float32 · global"),
        Array("tile", (64,), note="float32 · shared"),
        Array("out", (64,), ["0.0"] * 64, "float32 · global"),
    ]
    return KernelSteps(
        "neighbours", SOURCE, [Warp("warp 0"), Warp("warp 1", 32)], arrays, steps, [thread(0), thread(1)]
    )


def long_run(accesses: int = 100_000) -> KernelSteps:
    """One warp walks over 4,096 elements, 32 at a time, until it has made that many accesses."""
    source = [(1, "for k in range(n):"), (2, "    out[k * 32 + t] = a[k * 32 + t]")]
    steps = []
    for k in range(accesses // 64):
        cells = range(k * 32 % 4096, k * 32 % 4096 + 32)
        touches = [Touch("a", "read", cells), Touch("out", "write", cells)]
        steps.append(Step(2, ALL, touches=touches, values={"thread 0": {"k": str(k)}}))
    arrays = [Array("a", (4096,), note="float32"), Array("out", (4096,), note="float32")]
    return KernelSteps("copy", source, [Warp("warp 0")], arrays, steps, ["thread 0"])
