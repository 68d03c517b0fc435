# how: annotates its parameters with types of a module that is not installed
# exercise: basics.saxpy
from jaxtyping import Float


@cuda.jit
def saxpy(alpha: float, x: Float, y: Float) -> None:
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[i] += alpha * x[i]
