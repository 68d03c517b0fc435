"""Writes docs/instructions.md: which PTX instructions the simulator runs, and how exactly.

The names come from the simulator's own tables; what is said of them stands below, and a test holds the two
together. Run ``python docs/make_instructions.py`` after a change; with ``--check`` it only says whether the
file is current.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from gpulab.simulator.simt import meetings, opcodes, operations, table

HERE = Path(__file__).parent
TARGET = HERE / "instructions.md"

BITS = "bit-equal"
INTEGERS = "8- to 64-bit integers"
FLOATS = "f16, f32, f64"
TEST_INTEGERS = "tests/simt/test_integer_operations.py"
TEST_FLOATS = "tests/simt/test_float_operations.py"
TEST_SMALL = "tests/simt/test_small_formats.py"
TEST_MATRIX = "tests/simt/test_matrix.py"
TEST_TENSOR_CORES = "tests/simt/test_tensor_cores.py"
TEST_WGMMA = "tests/simt/test_wgmma.py"
TEST_BARRIERS = "tests/simt/test_barriers.py"
TEST_WARPS = "tests/simt/test_warp_operations.py"
TEST_MEMORY = "tests/simt/test_memory.py"
TEST_BULK = "tests/simt/test_bulk_copies.py"
TEST_TENSOR = "tests/simt/test_tensor_copies.py"
TEST_CLUSTERS = "tests/simt/test_clusters.py"


@dataclass(frozen=True)
class Family:
    """Instructions that are alike in types, exactness and test."""

    names: tuple[str, ...]
    types: str
    exactness: str
    test: str


FAMILIES = (
    Family(
        ("add", "sub", "mul"),
        f"{INTEGERS}; {FLOATS}, bf16, f16x2, bf16x2, f32x2; add, sub f32 of f16, bf16",
        f"{BITS}, rn rz rm rp, ftz, sat",
        TEST_FLOATS,
    ),
    Family(
        ("fma",),
        f"{FLOATS}, bf16, f16x2, bf16x2, f32x2, f32 of f16, bf16",
        f"{BITS}: rounded once, rn rz rm rp",
        TEST_FLOATS,
    ),
    Family(("addc", "subc", "madc"), "32- and 64-bit integers", f"{BITS}, carry chains", TEST_INTEGERS),
    Family(
        ("mad", "mul24", "mad24", "sad", "rem", "cnot"), INTEGERS, f"{BITS}, lo hi wide sat", TEST_INTEGERS
    ),
    Family(
        ("div",),
        f"{INTEGERS}; f32, f64",
        f"{BITS}, rn rz rm rp; approx and full are rounded correctly",
        TEST_FLOATS,
    ),
    Family(("rcp", "sqrt"), "f32, f64", f"{BITS} for rn rz rm rp; approx within 1 ulp", TEST_FLOATS),
    Family(
        ("rsqrt", "sin", "cos", "lg2", "ex2", "tanh"),
        "f32 (rsqrt also f64)",
        "within 1 ulp of the exact value",
        TEST_FLOATS,
    ),
    Family(("neg", "abs", "copysign", "testp"), f"{INTEGERS}; {FLOATS}", BITS, TEST_FLOATS),
    Family(
        ("min", "max"),
        f"{INTEGERS}; {FLOATS}, bf16, packed",
        f"{BITS}: NaN, ±0 and .NaN as the manual says",
        TEST_FLOATS,
    ),
    Family(
        ("and", "or", "xor", "not", "lop3", "shl", "shr", "shf"),
        "16- to 64-bit, pred",
        f"{BITS}: shifts clamp",
        TEST_INTEGERS,
    ),
    Family(
        ("popc", "clz", "brev", "bfind", "bfe", "bfi", "bmsk", "prmt"), "32- and 64-bit", BITS, TEST_INTEGERS
    ),
    Family(("dp4a", "dp2a"), "s32, u32", BITS, TEST_INTEGERS),
    Family(
        ("set", "setp", "selp", "slct"),
        f"{INTEGERS}; {FLOATS}, packed",
        f"{BITS}: all ordered and unordered comparisons",
        TEST_FLOATS,
    ),
    Family(
        ("cvt",),
        "all integers and floats, bf16, tf32, packed; pairs of e4m3, e5m2, e2m3, e3m2, e2m1, ue8m0",
        f"{BITS}: all roundings and saturations",
        TEST_SMALL,
    ),
    Family(
        ("cvt.rs",),
        "f32 to pairs of f16, bf16; to four e4m3, e5m2, e2m3, e3m2, e2m1; relu, satfinite",
        "as exact fractions: random bits are added to what is cut, and a carry goes up. Which bits of the "
        "register belong to which number is our reading: 13 or 16 of each half of it, or a byte",
        "tests/simt/test_stochastic.py",
    ),
    Family(("mov", "cvta", "isspacep"), "all, vectors", BITS, TEST_INTEGERS),
    Family(
        ("ld", "ldu", "st"),
        "all, v2 v4 v8; global, shared, shared::cluster, local, const, param, generic",
        BITS,
        TEST_MEMORY,
    ),
    Family(
        ("atom", "red"),
        "32- and 64-bit integers, f16, f32, f64; bf16, f16x2, bf16x2 (add, min, max)",
        "in the order of blocks, warps and lanes: same result every time",
        TEST_MEMORY,
    ),
    Family(
        ("membar", "fence", "nanosleep"),
        "–",
        "order nothing that was not in order; mark a loop as waiting",
        "tests/simt/test_scheduling.py",
    ),
    Family(
        ("bar", "barrier"),
        "sync, arrive, red popc/and/or, numbered, counted; bar.warp.sync",
        "waits for all threads that have not exited; one for a number of threads counts whole warps",
        TEST_BARRIERS,
    ),
    Family(
        ("mbarrier",),
        "init, inval, arrive, arrive_drop, expect_tx, complete_tx, test_wait, try_wait, pending_count",
        "as a scalar model, and at barriers of other blocks of the cluster; the bits of the word are ours",
        "tests/simt/test_mbarriers.py",
    ),
    Family(
        ("shfl", "vote", "match", "redux", "elect"),
        "32-bit (match also 64-bit); redux f32 min max, abs, NaN",
        f"{BITS}; lanes meet on (warp, mask, operation)",
        TEST_WARPS,
    ),
    Family(("activemask",), "–", "the lanes of the group", TEST_WARPS),
    Family(
        ("mma",),
        "f16, bf16, tf32, e4m3, e5m2, s8, u8, f64; mma.sp of all but f64",
        "as measured bit for bit for each generation by MMA-Sim; sparse as if there were no other columns",
        TEST_MATRIX,
    ),
    Family(
        ("mma with a kind",),
        "f8f6f4, mxf8f6f4, mxf4, mxf4nvf4 of the RTX 50 series: e4m3, e5m2, e2m3, e3m2, e2m1 with block "
        "scales of ue8m0 and ue4m3; sparse with f8f6f4 and mxf8f6f4",
        "sums as measured bit for bit by MMA-Sim; e2m3 and e3m2, which it did not measure, as the others",
        "tests/simt/test_small_matrices.py",
    ),
    Family(
        ("wmma",),
        "f16, bf16, tf32, s8, u8, f64",
        "as mma; the layout of a fragment is open: its load or store counts as the fewest requests. "
        "A matrix of f16, bf16, tf32 or f32 that is not at 32 bytes, or has rows not at 16, is a fault",
        "tests/cupy",
    ),
    Family(
        ("wgmma",),
        "mma_async f16, bf16, tf32, e4m3, e5m2, s8, u8, every n, both majors, all swizzles, dense and "
        "sparse; fence, commit_group, wait_group",
        "as measured bit for bit by MMA-Sim; operands in shared memory are read, and results appear, at the "
        "wait",
        TEST_WGMMA,
    ),
    Family(
        ("tcgen05",),
        "alloc, dealloc, relinquish_alloc_permit; ld, st 32x32b 16x32bx2 16x64b 16x128b 16x256b, pack::16b; "
        "ld.red; cp 4x256b 32x128b 64x128b 128x128b 128x256b, unpacking 4 and 6 bits; mma f16, tf32, f8f6f4, "
        "i8, mxf8f6f4, mxf4, mxf4nvf4, of one block and of a pair, A in shared or Tensor Memory; mma.ws; "
        "mma.sp of 128 rows a block without block scales; shift, and mma with ashift; commit, fence, wait",
        "sums are rounded as measured bit for bit by MMA-Sim: cut to 25 bits, of 4-bit numbers to 35 after "
        "exact sums of 16 products. Work is done when a thread waits at the mbarrier of its commit. An "
        "allocation that does not fit is a fault and not a wait. A number of 4 bits in a byte of Tensor "
        "Memory is in the middle, which is our reading; the metadata of sparse products lie as CUTLASS "
        "lays them, and rows shift as in NVIDIA's example for a B200. An address that names the first 32 "
        "lanes means those of the warp",
        "tests/simt/test_tensor_core_forms.py",
    ),
    Family(
        ("setmaxnreg",),
        "inc, dec",
        "a warp waits for registers of its block; more than ptxas allotted to the block are a fault",
        "tests/simt/test_register_pools.py",
    ),
    Family(("ldmatrix", "stmatrix"), "m8n8.b16, x1 x2 x4, trans", BITS, TEST_MATRIX),
    Family(
        ("ldmatrix, stmatrix of bytes",),
        "m16n16.trans of b8, b6x16_p32, b4x16_p64; m8n16 of b6x16_p32, b4x16_p64; stmatrix m16n8.trans.b8",
        f"{BITS}; numbers of 6 and 4 bits become bytes",
        "tests/simt/test_small_matrices.py",
    ),
    Family(
        ("cp",),
        "cp.async ca, cg; commit_group, wait_group, wait_all, mbarrier.arrive",
        "data arrives at the wait and not before",
        TEST_MATRIX,
    ),
    Family(
        ("cp.async.bulk", "cp.reduce.async.bulk"),
        "global ↔ shared, shared → shared of another block, multicast, prefetch; commit_group, wait_group, "
        "read; add min max inc dec and or xor of 32- and 64-bit integers, f16, bf16, f32, f64",
        "a copy happens as late as may be, at once or at random, by the schedule",
        TEST_BULK,
    ),
    Family(
        ("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor"),
        "1d to 5d; tile, im2col, tile::gather4 and tile::scatter4; all types of a tensor map, those of 4 and "
        "6 bits too; swizzles of 32, 64, 128 bytes and none, in pieces of 16, 32 and 64 bytes; element "
        "strides, zeros or NaN outside",
        "each element as a scalar model. That pieces of 64 bytes change places, and halves of 16 bytes, in "
        "every second line from the second on is our reading",
        TEST_TENSOR,
    ),
    Family(
        ("tensormap",),
        "replace of each field, cp_fenceproxy; maps in parameters, global or constant memory",
        "the bytes of a map are ours",
        TEST_TENSOR,
    ),
    Family(
        ("barrier.cluster",),
        "arrive, wait, relaxed, aligned",
        "waits for all threads of the cluster that have not exited",
        TEST_CLUSTERS,
    ),
    Family(
        ("clusterlaunchcontrol",),
        "try_cancel, also multicast to the cluster; query_cancel is_canceled, get_first_ctaid",
        f"{BITS}; the blocks that have not begun are those that the GPU does not hold at once",
        "tests/simt/test_launch_control.py",
    ),
    Family(
        ("mapa", "getctarank"),
        "u32, u64; shared::cluster, generic",
        "bits 24 and up of a shared address are the rank",
        TEST_CLUSTERS,
    ),
    Family(
        ("st.async", "red.async"),
        "b32 b64 u32 … f64, v2 v4; add min max inc dec and or xor",
        "as bulk copies",
        TEST_CLUSTERS,
    ),
    Family(
        ("call",),
        "device functions, recursion, calls on an address, malloc, free, vprintf, assertions",
        "most functions are inlined; the others have a stack of limited depth",
        "tests/simt/test_kept_functions.py",
    ),
    Family(
        ("tex", "tld4"),
        "1d 2d 3d a1d a2d, level and grad of one level; f32 s32 u32",
        "weights of 8 fractional bits, to the nearest; sums in f32. Not counted, not seen by the sanitizer",
        "tests/simt/test_textures.py",
    ),
    Family(
        ("suld", "sust"),
        "b; 1d 2d 3d a1d a2d; b8 b16 b32 b64, v2 v4; trap clamp zero",
        "exact. Not counted, not seen by the sanitizer",
        "tests/simt/test_textures.py",
    ),
    Family(
        ("bra", "brx", "ret", "exit", "trap"),
        "–",
        "lowest program counter first, fair to those that wait",
        "tests/simt/test_scheduling.py",
    ),
    Family(
        (
            "prefetch",
            "prefetchu",
            "createpolicy",
            "applypriority",
            "discard",
            "pmevent",
            "brkpt",
            "griddepcontrol",
        ),
        "–",
        "hints: no effect",
        TEST_MEMORY,
    ),
)


# Forms of instructions that run otherwise; the simulator says so where it meets one.
FORMS = {
    "cp.async.bulk.tensor of interleaved layouts": "How slices of channels are counted in coordinates is "
    "written nowhere, and no compiler here makes such maps: lay channels side by side.",
    "cp.async.bulk.tensor im2col::w": "No compiler here makes it: use im2col.",
    "tcgen05.mma.ws with a mask of zero columns": "No compiler here makes it: write zeros to B.",
    "tcgen05.mma.sp with block scales, or of fewer than 128 rows a block": "Where their metadata lie is not "
    "known: multiply densely.",
}


def known() -> set[str]:
    """The opcodes that the simulator's tables hold, by their first part."""
    return set(operations.ROWS) | set(table.BUILDERS) | set(meetings.WARP) | opcodes.JUMPS


def described() -> set[str]:
    """The opcodes that the families above tell of."""
    names = (name for family in FAMILIES for several in family.names for name in several.split(", "))
    return {re.split(r"[. ]", name)[0] for name in names}


def page() -> str:
    """The text of docs/instructions.md."""
    rows = [
        "| instruction | types | exactness | tested in |",
        "|---|---|---|---|",
        *(
            f"| {', '.join(f'`{n}`' for n in f.names)} | {f.types} | {f.exactness} | `{f.test}` |"
            for f in FAMILIES
        ),
    ]
    refused = [f"| `{name}` | {advice} |" for name, advice in (*table.ADVICE.items(), *FORMS.items())]
    return "\n".join(
        [
            "# Instructions that the simulator runs",
            "",
            "Written by `python docs/make_instructions.py` from the simulator's tables.",
            "",
            "Every row of arithmetic is held against exact fractions or Python integers, over random",
            "bits and the edges of each type, on two schedules. f32 and f16 arithmetic makes PTX's own",
            "NaN; copies keep theirs.",
            "",
            *rows,
            "",
            "Refused, with advice:",
            "",
            "| instruction | what to do |",
            "|---|---|",
            *refused,
            "",
        ]
    )


def main() -> int:
    if missing := sorted(known() - described()):
        print(f"docs/make_instructions.py does not tell of: {', '.join(missing)}", file=sys.stderr)
        return 1
    if stale := sorted(described() - known()):
        print(
            f"docs/make_instructions.py tells of instructions that are gone: {', '.join(stale)}",
            file=sys.stderr,
        )
        return 1
    if "--check" in sys.argv[1:]:
        if TARGET.read_text() == page():
            return 0
        print("docs/instructions.md is old: run python docs/make_instructions.py", file=sys.stderr)
        return 1
    TARGET.write_text(page())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
