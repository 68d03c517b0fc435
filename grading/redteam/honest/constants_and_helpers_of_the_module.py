# how: constants of the module, a device function and type annotations
# exercise: basics.saxpy
THREADS: int = 128
ONE = float32(1)


@cuda.jit(device=True)
def fused(alpha, x, y):
    return alpha * x + y * ONE


@cuda.jit
def saxpy(alpha: float, x, y) -> None:
    """y ← αx + y"""
    start: int = cuda.grid(1)
    for i in range(start, len(y), cuda.gridsize(1)):
        y[i] = fused(alpha, x[i], y[i])
