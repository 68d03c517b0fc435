"""Which pipe of an SM executes an instruction of machine code, as a table.

Source: Nsight Compute, Kernel Profiling Guide, "Pipelines"; Cuda Binary Utilities, instruction set reference.
"""

from __future__ import annotations


def opcodes(words: str) -> frozenset[str]:
    """Opcodes up to their first dot, given with blanks between."""
    return frozenset(words.split())


# The pipe as Nsight Compute calls it → what it is for, and the opcodes, up to the first dot.
PIPES: dict[str, tuple[str, frozenset[str]]] = {
    "fma": (
        "32-bit floating point, integer products",
        opcodes("FADD FADD32I FFMA FFMA32I FMUL FMUL32I IMAD IMUL IDP FSWZADD"),
    ),
    "alu": (
        "integers, logic, comparisons",
        opcodes(
            "IADD IADD3 IADD32I LOP LOP3 LOP32I ISETP ICMP IABS IMNMX LEA SHF SHL SHR SEL FSEL FSETP FSET "
            "FMNMX FCHK PRMT MOV MOV32I BMSK SGXT PLOP3 PSETP P2R R2P VOTE VOTEU F2FP I2IP VABSDIFF VIADD "
            "VIADDMNMX VIMNMX ISCADD XMAD I2I REDUX MATCH"
        ),
    ),
    "fp64": ("64-bit floating point", opcodes("DADD DFMA DMUL DSETP DMNMX")),
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
        opcodes("MUFU F2F F2I I2F FRND POPC FLO BREV"),
    ),
    "lsu": (
        "loads, stores, atomics, shuffles",
        opcodes(
            "LD LDG LDS LDL LDSM LDGSTS LDC ST STG STS STL STSM ATOM ATOMG ATOMS RED REDG SHFL MEMBAR CCTL "
            "LDGDEPBAR LDGMC QSPC SYNCS FENCE ARRIVES"
        ),
    ),
    "uniform": ("once for a whole warp", opcodes("R2UR S2UR")),  # and all opcodes that begin with U
    "control": (
        "branches, barriers, waiting",
        opcodes(
            "BRA BRX BRXU JMP JMX EXIT RET CALL BSSY BSYNC BREAK WARPSYNC WARPGROUP BAR DEPBAR YIELD "
            "NANOSLEEP BMOV B2R KILL RPCMOV ERRBAR BPT NOP PREEXIT ACQBULK ELECT ENDCOLLECTIVE"
        ),
    ),
    "other": ("special registers", opcodes("S2R CS2R")),
}
_PIPE = {opcode: pipe for pipe, (_, names) in PIPES.items() for opcode in names}


def pipe_of(opcode: str) -> str:
    """The pipe of an opcode such as ``FFMA`` or ``LDG.E.64``; ``other`` for one that is in no row."""
    name = opcode.partition(".")[0]
    return _PIPE.get(name) or ("uniform" if name.startswith("U") else "other")
