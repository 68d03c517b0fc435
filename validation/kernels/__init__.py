"""The kernels: CUDA C in `*.cu`, the same in numba in `*.py` where numba can say it."""
