# exercise: cupy.gemm  fails: right  says: cuBLAS carries it out
def gemm(rows, cols, inner, pitch_a, pitch_b, pitch_c, b_transposed):
    operands = {"first": "A", "second": "B", "transa": "N", "transb": "T" if b_transposed else "N"}
    return operands | {"m": rows, "n": cols, "k": inner, "lda": pitch_a, "ldb": pitch_b, "ldc": pitch_c}
