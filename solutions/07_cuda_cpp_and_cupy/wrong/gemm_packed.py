# exercise: cupy.gemm  fails: right  says: first wrong: with pitches
def gemm(rows, cols, inner, pitch_a, pitch_b, pitch_c, b_transposed):
    operands = {"first": "B", "second": "A", "transa": "T" if b_transposed else "N", "transb": "N"}
    lda = inner if b_transposed else cols
    return operands | {"m": cols, "n": rows, "k": inner, "lda": lda, "ldb": inner, "ldc": cols}
