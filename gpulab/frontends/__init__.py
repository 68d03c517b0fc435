"""numba.cuda's, CuPy's and Triton's interfaces on the simulated device."""
