"""Which pipe of an SM executes an instruction of machine code, as a table.

Source: Nsight Compute, Kernel Profiling Guide, "Pipelines"; Cuda Binary Utilities, instruction set reference.
Where they leave it open, the counters of an H100 decide (validation/measured/H100.json): in the 285 launches
whose machine instructions are known exactly, counts of opcodes explain the pipes' counters to the last
instruction, except those of lsu and adu. Branches, for one, are in none of them.
"""

from __future__ import annotations

from collections import Counter

from gpulab.analysis.profile.matrix import matrix_dtype
from gpulab.simulator.observe import Counts
from gpulab.simulator.ptx import Instruction


def opcodes(words: str) -> frozenset[str]:
    """Opcodes up to their first dot, or types, given with blanks between."""
    return frozenset(words.split())


# The pipe as Nsight Compute calls it → what it is for, and the opcodes, up to the first dot.
PIPES: dict[str, tuple[str, frozenset[str]]] = {
    "fma": (
        "32-bit floating point, integer products",
        opcodes("FADD FADD32I FFMA FFMA32I FMUL FMUL32I IMAD IMUL IDP FSWZADD VIADD"),
    ),
    "alu": (
        "integers, logic, comparisons",
        opcodes(
            "IADD IADD3 IADD32I LOP LOP3 LOP32I ISETP ICMP IABS IMNMX LEA SHF SHL SHR SEL FSEL FSETP FSET "
            "FMNMX PRMT MOV MOV32I BMSK SGXT PLOP3 PSETP P2R R2P R2UR CS2R VOTE VOTEU F2FP I2IP VABSDIFF "
            "VIADDMNMX VIMNMX ISCADD XMAD I2I REDUX MATCH"
        ),
    ),
    "fp64": ("64-bit floating point", opcodes("DADD DFMA DMUL DSETP DMNMX")),
    # An H100 has no such counter: it counts HFMA2.MMA, every other one, as tensor's, and the rest as fma's.
    "fp16": (
        "pairs of 16-bit floating point",
        opcodes("HADD2 HADD2_32I HFMA2 HFMA2_32I HMUL2 HMUL2_32I HSET2 HSETP2 HMNMX2"),
    ),
    "tensor": (
        "matrices: tensor cores",
        opcodes("HMMA IMMA BMMA DMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA MOVM"),
    ),
    "xu": (
        "special functions, conversions",
        opcodes("MUFU FCHK F2F F2I I2F FRND POPC FLO BREV"),
    ),
    "lsu": (
        "loads, stores, atomics, shuffles",
        opcodes(
            "LD LDG LDS LDL LDSM LDGSTS ST STG STS STL STSM ATOM ATOMG ATOMS RED REDG SHFL MEMBAR CCTL "
            "LDGDEPBAR LDGMC QSPC SYNCS FENCE ARRIVES"
        ),
    ),
    "uniform": ("once for a whole warp", frozenset()),  # opcodes that begin with U, but for those elsewhere
    "adu": ("constants, special registers, barriers of blocks", opcodes("LDC BAR S2R S2UR")),
    "control": (
        "ends, waiting of warps",
        opcodes(
            "EXIT RET CALL BSSY BSYNC BREAK WARPSYNC WARPGROUP DEPBAR YIELD "
            "NANOSLEEP BMOV B2R KILL RPCMOV ERRBAR BPT NOP PREEXIT ACQBULK ELECT ENDCOLLECTIVE"
        ),
    ),
    "other": (
        "branches, constants of a whole warp, clocks",
        opcodes("BRA BRX BRXU JMP JMX ULDC UMOV UP2UR"),
    ),
}
_PIPE = {opcode: pipe for pipe, (_, names) in PIPES.items() for opcode in names}


def pipe_of(opcode: str) -> str:
    """The pipe of an opcode such as ``FFMA`` or ``LDG.E.64``; ``other`` for one that is in no row.

    >>> pipe_of("LDG.E.64")
    'lsu'
    """
    name = opcode.partition(".")[0]
    return _PIPE.get(name) or ("uniform" if name.startswith("U") else "other")


# Opcodes of PTX by the pipe that does the most of their work, whatever their type.
_OF_PTX = {
    name: pipe
    for pipe, names in {
        "tensor": "mma tcgen05",
        "xu": "ex2 lg2 sin cos tanh rcp rsqrt sqrt div popc clz brev bfind",
        "lsu": "ld ldu st atom red shfl ldmatrix stmatrix cp tensormap prefetch prefetchu membar fence",
        "adu": "bar barrier",
        "other": "bra brx",
        "control": "ret exit call mbarrier nanosleep trap brkpt elect griddepcontrol wgmma setmaxnreg",
    }.items()
    for name in names.split()
}
_INTEGER = opcodes("s8 u8 b8 s16 u16 b16 s32 u32 b32 s64 u64 b64 pred")
_FLOATS = opcodes("f64 f32 f16 bf16 f16x2 bf16x2 tf32 e4m3 e5m2 e4m3x2 e5m2x2")
_PRODUCTS = opcodes("mul mad mul24 mad24 dp4a dp2a madc")


def pipe_of_ptx(instruction: Instruction) -> str:
    """The pipe that an instruction of PTX mostly keeps busy once ptxas has translated it.

    By opcode and type: float64 and pairs of halves have pipes of their own, integer products share that of
    float32, as machine code does. Exact divisions and roots are sequences, listed where their core runs.

    >>> text = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { .reg .b32 %r<3>; "
    >>> text += "add.u32 %r2, %r1, 1; ret; }"
    >>> pipe_of_ptx(gpulab.simulator.ptx.parse(text).functions["k"].blocks[0].instructions[0])
    'alu'
    """
    parts = instruction.parts
    name = parts[0]
    if matrix_dtype(instruction) is not None:
        return "tensor"
    if name == "wmma":
        return "lsu"
    if name in ("ld", "ldu") and any(part.startswith(("param", "const")) for part in parts):
        return "other"
    if name in _OF_PTX:
        return _OF_PTX[name]
    kinds = [part for part in parts[1:] if part in _INTEGER or part in _FLOATS]
    if name == "cvt":
        return "alu" if all(kind in _INTEGER for kind in kinds) else "xu"
    kind = kinds[-1] if kinds else ""
    if kind == "f64":
        return "fp64"
    if kind in ("f16", "bf16", "f16x2", "bf16x2"):
        return "fp16"
    if kind == "f32" and name in ("add", "sub", "mul", "fma", "mad"):
        return "fma"
    return "fma" if kind in _INTEGER and name in _PRODUCTS else "alu"


def ptx_pipes(counts: Counts) -> Counter[str]:
    """Warp instructions of PTX by pipe."""
    found = Counter[str]()
    for instruction, n in zip(counts.instructions, counts.table["warps"], strict=True):
        found[pipe_of_ptx(instruction)] += int(n)
    return found
