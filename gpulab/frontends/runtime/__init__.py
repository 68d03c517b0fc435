"""CUDA's runtime as compiled C++ programs call it, answered by the simulated device.

nvcc leaves calls of ``cudaMalloc``, ``cudaLaunchKernel`` and so on in a program, and its kernels as PTX. The
calls are led here instead of into libcudart; `Runtime` has an answer for each, and the PTX runs on the
simulated device.
"""

from __future__ import annotations

from .runtime import Runtime

__all__ = ["Runtime"]
