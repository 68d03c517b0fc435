"""Runs kernels on any machine: compilers, PTX, the SIMT engine and its observers, and data sheets of GPUs."""
