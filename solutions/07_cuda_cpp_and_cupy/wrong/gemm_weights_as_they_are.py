# exercise: cupy.gemm  fails: right  says: transposed weights
def gemm(rows, cols, inner, pitch_a, pitch_b, pitch_c, b_transposed):
    operands = {"first": "B", "second": "A", "transa": "N", "transb": "N"}
    return operands | {"m": cols, "n": rows, "k": inner, "lda": pitch_b, "ldb": pitch_a, "ldc": pitch_c}
