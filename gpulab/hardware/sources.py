"""The documents that the figures of this package come from."""

from __future__ import annotations

from .figure import Source

VOLTA_PAPER = Source("NVIDIA Tesla V100 GPU Architecture, WP-08608-001", "NVIDIA", 2017)
TURING_PAPER = Source("NVIDIA Turing GPU Architecture, WP-09183-001", "NVIDIA", 2018)
T4_SHEET = Source("NVIDIA T4 Tensor Core GPU data sheet", "NVIDIA", 2019)
AMPERE_PAPER = Source(
    "NVIDIA Ampere Architecture In-Depth",
    "NVIDIA",
    2020,
    "developer.nvidia.com/blog/nvidia-ampere-architecture-in-depth",
)
A100_SHEET = Source("NVIDIA A100 80GB Tensor Core GPU data sheet", "NVIDIA", 2021)
ADA_PAPER = Source("NVIDIA Ada GPU Architecture white paper, appendix A", "NVIDIA", 2022)
L4_SHEET = Source("NVIDIA L4 Tensor Core GPU data sheet", "NVIDIA", 2023)
L4_BRIEF = Source("NVIDIA L4 GPU accelerator product brief, PB-11316-001", "NVIDIA", 2023)
HOPPER_PAPER = Source("NVIDIA H100 Tensor Core GPU Architecture white paper", "NVIDIA", 2022)
H100_SHEET = Source("NVIDIA H100 Tensor Core GPU data sheet", "NVIDIA", 2023)
H200_SHEET = Source("NVIDIA H200 Tensor Core GPU data sheet", "NVIDIA", 2023)
GUIDE = Source(
    "CUDA Programming Guide, Compute Capabilities",
    "NVIDIA",
    2025,
    "docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html",
)
OCCUPANCY_HEADER = Source("cuda_occupancy.h and cuda/__device/arch_traits.h of CUDA 13", "NVIDIA", 2025)
JIA_2018 = Source(
    "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking",
    "Jia et al.",
    2018,
    "arxiv.org/abs/1804.06826",
)
JIA_2019 = Source(
    "Dissecting the NVidia Turing T4 GPU via Microbenchmarking",
    "Jia et al.",
    2019,
    "arxiv.org/abs/1903.07486",
)
ABDELKHALIK_2022 = Source(
    "Demystifying the Nvidia Ampere Architecture through Microbenchmarking and Instruction-level Analysis",
    "Abdelkhalik et al.",
    2022,
    "arxiv.org/abs/2208.11174",
)
LUO_2025 = Source(
    "Dissecting the NVIDIA Hopper Architecture through Microbenchmarking and Multiple Level Analysis",
    "Luo et al.",
    2025,
    "arxiv.org/abs/2501.12084",
)
RRZE = Source(
    "gpu-benches: gpu-latency, gpu-stream (scale kernel, full occupancy), gpu-l2-cache",
    "Erlangen National High Performance Computing Center",
    2025,
    "github.com/RRZE-HPC/gpu-benches",
)
ARITHMETIC = Source("computed from the other figures of the same record", "gpulab", 2025)
