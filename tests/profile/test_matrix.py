"""Opcodes of matrix products and the type of their factors."""

from __future__ import annotations

import pytest

from gpulab.analysis.profile.matrix import matrix_dtype
from gpulab.simulator.ptx import Instruction


@pytest.mark.parametrize(
    "opcode, dtype",
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "float16"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "bfloat16"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "tfloat32"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "float8"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "float64"),
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32", "int8"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "float16"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32", "bfloat16"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", None),
        ("fma.rn.f32", None),
    ],
)
def test_the_factors_of_a_matrix_product_have_a_type(opcode: str, dtype: str | None) -> None:
    assert matrix_dtype(Instruction(opcode, ())) == dtype
