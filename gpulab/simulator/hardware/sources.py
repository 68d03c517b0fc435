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
A100_40_SHEET = Source("NVIDIA A100 Tensor Core GPU data sheet, 40 GB", "NVIDIA", 2020)
A100_SHEET = Source("NVIDIA A100 80GB Tensor Core GPU data sheet", "NVIDIA", 2021)
GA102_PAPER = Source("NVIDIA Ampere GA102 GPU Architecture white paper, appendix A", "NVIDIA", 2020)
A10_SHEET = Source("NVIDIA A10 Tensor Core GPU data sheet", "NVIDIA", 2021)
A10_BRIEF = Source("NVIDIA A10 GPU accelerator product brief", "NVIDIA", 2021)
ORIN_BRIEF = Source("NVIDIA Jetson AGX Orin Series technical brief, v1.2", "NVIDIA", 2022)
ADA_PAPER = Source("NVIDIA Ada GPU Architecture white paper, appendix A", "NVIDIA", 2022)
L4_SHEET = Source("NVIDIA L4 Tensor Core GPU data sheet", "NVIDIA", 2023)
L4_BRIEF = Source("NVIDIA L4 GPU accelerator product brief, PB-11316-001", "NVIDIA", 2023)
L40_SHEET = Source("NVIDIA L40 data sheet", "NVIDIA", 2022)
L40S_SHEET = Source("NVIDIA L40S data sheet", "NVIDIA", 2023)
HOPPER_PAPER = Source("NVIDIA H100 Tensor Core GPU Architecture white paper", "NVIDIA", 2022)
H100_NVL_BRIEF = Source("NVIDIA H100 NVL GPU product brief, PB-11773-001", "NVIDIA", 2024)
H100_SHEET = Source("NVIDIA H100 Tensor Core GPU data sheet", "NVIDIA", 2023)
H200_SHEET = Source("NVIDIA H200 Tensor Core GPU data sheet", "NVIDIA", 2023)
BLACKWELL_SHEET = Source("NVIDIA HGX B200 and DGX B200 data sheets, an eighth of eight GPUs", "NVIDIA", 2024)
GB200_SHEET = Source("NVIDIA GB200 NVL72, specifications; one of its 72 GPUs", "NVIDIA", 2024)
GB300_SHEET = Source("NVIDIA GB300 NVL72, specifications; one of its 72 GPUs", "NVIDIA", 2025)
B300_SHEET = Source("NVIDIA HGX B300, specifications; one of its eight GPUs", "NVIDIA", 2025)
ULTRA_BLOG = Source(
    "Inside NVIDIA Blackwell Ultra: The Chip Powering the AI Factory Era",
    "NVIDIA",
    2025,
    "developer.nvidia.com/blog/inside-nvidia-blackwell-ultra-the-chip-powering-the-ai-factory-era",
)
CLUSTER_QUERY = Source(
    "occupancy of clusters on GB200 and B300, notes to a kernel of pull request 59342",
    "vLLM",
    2026,
    "github.com/vllm-project/vllm/pull/59342",
)
PRO_6000_SHEET = Source("NVIDIA RTX PRO 6000 Blackwell Workstation Edition data sheet", "NVIDIA", 2025)
PRO_PAPER = Source("NVIDIA RTX Blackwell PRO GPU Architecture white paper, appendix", "NVIDIA", 2025)
GB10_TALK = Source("NVIDIA GB10 SoC: AI Supercomputer On Your Desk, Hot Chips 37", "NVIDIA", 2025)
GB202_PAPER = Source("NVIDIA RTX Blackwell GPU Architecture white paper, appendix A", "NVIDIA", 2025)
B200_SEEN = Source(
    "Nvidia's B200: Keeping the CUDA Juggernaut Rolling",
    "Chips and Cheese",
    2025,
    "chipsandcheese.com/p/nvidias-b200-keeping-the-cuda-juggernaut",
)
B200_DRIVER = Source(
    "device query of a B200, pull request 4002 of pytorch/ao",
    "PyTorch",
    2026,
    "github.com/pytorch/ao/pull/4002",
)
XLA_DEVICES = Source(
    "descriptions of devices as their drivers give them: gb200, gb300, rtx6000pro",
    "OpenXLA",
    2026,
    "github.com/openxla/xla, xla/backends/gpu/target_config/specs",
)
GUIDE = Source(
    "CUDA Programming Guide, Compute Capabilities",
    "NVIDIA",
    2025,
    "docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html",
)
THROUGHPUTS = Source(
    "CUDA C++ Best Practices Guide, Throughput of Native Arithmetic Instructions",
    "NVIDIA",
    2025,
    "docs.nvidia.com/cuda/cuda-c-best-practices-guide/#throughput-of-native-arithmetic-instructions",
)
MIG_GUIDE = Source(
    "Multi-Instance GPU User Guide, supported profiles; placements as `nvidia-smi mig -lgipp` lists them",
    "NVIDIA",
    2025,
    "docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html",
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
ARAFA_2019 = Source(
    "Low Overhead Instruction Latency Characterization for NVIDIA GPGPUs",
    "Arafa et al.",
    2019,
    "arxiv.org/abs/1905.08778",
)
ACCEL_SIM = Source(
    "Accel-Sim, trace.config of SM80_A100 and SM90_H100",
    "Purdue University",
    2024,
    "github.com/accel-sim/accel-sim-framework",
)
PPT_GPU = Source(
    "PPT-GPU with sub-cores, hardware/ISA/Ampere.py",
    "PPT-GPU",
    2023,
    "github.com/TheRainstorm/ppt-gpu-subcore",
)
LUO_2025 = Source(
    "Dissecting the NVIDIA Hopper Architecture through Microbenchmarking and Multiple Level Analysis",
    "Luo et al.",
    2025,
    "arxiv.org/abs/2501.12084",
)
RRZE = Source(
    "gpu-benches: gpu-latency, gpu-stream (scale kernel, full occupancy), gpu-l2-cache, gpu-small-kernels",
    "Erlangen National High Performance Computing Center",
    2025,
    "github.com/RRZE-HPC/gpu-benches",
)
SYNC_PERFORMANCE = Source(
    "Characterizing CUDA and OpenMP Synchronization Primitives, raw results",
    "Burtscher et al.",
    2024,
    "github.com/burtscher/SyncPerformance, results",
)
# Other makers, CPUs, links.
MI300X_SHEET = Source("AMD Instinct MI300X accelerator data sheet", "AMD", 2023)
MI325X_SHEET = Source("AMD Instinct MI325X accelerator data sheet", "AMD", 2024)
RX7900_PAGE = Source("AMD Radeon RX 7900 XTX specifications", "AMD", 2022)
MI355X_SHEET = Source("AMD Instinct MI355X GPU data sheet", "AMD", 2025)
ROCM_SPECS = Source(
    "ROCm, Accelerator and GPU hardware specifications",
    "AMD",
    2025,
    "rocm.docs.amd.com/en/latest/reference/gpu-arch-specs.html",
)
MAX_OVERVIEW = Source("Intel Data Center GPU Max Series Technical Overview", "Intel", 2024)
XE_HPC_TALK = Source("Intel Architecture Day 2021, presentation of the Xe HPC core", "Intel", 2021)
ARC_B580_ARK = Source("Intel Arc B580 Graphics, product specifications", "Intel", 2024, "ark.intel.com")
MAX_ARK = Source("Intel Data Center GPU Max 1550, product specifications", "Intel", 2023, "ark.intel.com")
GAUDI_PAPER = Source("Intel Gaudi 3 AI Accelerator white paper", "Intel", 2024)
TPU_V5E = Source("Cloud TPU v5e", "Google", 2025, "docs.cloud.google.com/tpu/docs/v5e")
TPU_V5P = Source("Cloud TPU v5p", "Google", 2025, "docs.cloud.google.com/tpu/docs/v5p")
TPU_V6E = Source("Cloud TPU v6e", "Google", 2026, "docs.cloud.google.com/tpu/docs/v6e")
TPU_7X = Source("Cloud TPU7x (Ironwood)", "Google", 2026, "docs.cloud.google.com/tpu/docs/tpu7x")
M3_ULTRA = Source("Mac Studio (2025), technical specifications", "Apple", 2025)
M4_MAX = Source("MacBook Pro with M4 Max, technical specifications", "Apple", 2024)
# Small devices.
ORIN_NANO_SHEET = Source("NVIDIA Jetson Orin Nano Series Modules data sheet, DS-11105-001", "NVIDIA", 2023)
ORIN_NX_SHEET = Source("NVIDIA Jetson Orin NX Series Modules data sheet, DS-10712-001", "NVIDIA", 2023)
ORIN_SUPER = Source(
    'NVIDIA Jetson Orin Nano Developer Kit Gets a "Super" Boost',
    "NVIDIA",
    2024,
    "developer.nvidia.com/blog/nvidia-jetson-orin-nano-developer-kit-gets-a-super-boost",
)
THOR_QUERY = Source(
    "Clarification on CUDA Core and Tensor Core counts for Jetson AGX Thor: a device query",
    "NVIDIA developer forums",
    2025,
    "forums.developer.nvidia.com/t/clarification-on-cuda-core-and-tensor-core-counts-for-jetson-agx-thor/356355",
)
THOR_PAGE = Source("NVIDIA Jetson Thor, technical specifications", "NVIDIA", 2025)
SPARK_GUIDE = Source(
    "DGX Spark User Guide, hardware overview", "NVIDIA", 2025, "docs.nvidia.com/dgx/dgx-spark"
)
NVPMODEL = Source(
    "Jetson Linux Developer Guide, supported modes and power efficiency; nvpmodel of the modules "
    "p3701-0000 and p3767-0003, R36",
    "NVIDIA",
    2024,
    "docs.nvidia.com/jetson/archives/r36.4.3/DeveloperGuide/SD/PlatformPowerAndPerformance.html",
)
X_ELITE_BRIEF = Source("Snapdragon X Elite product brief", "Qualcomm", 2024)
ELITE_8_BRIEF = Source("Snapdragon 8 Elite Mobile Platform product brief", "Qualcomm", 2024)
RYZEN_MAX_PAGE = Source("AMD Ryzen AI Max+ 395 specifications", "AMD", 2025)
CORE_258V_ARK = Source("Intel Core Ultra 7 258V, product specifications", "Intel", 2024, "ark.intel.com")
M4_NEWS = Source(
    "Apple introduces M4 Pro and M4 Max, and the page on M4", "Apple", 2024, "apple.com/newsroom"
)
BCM2712 = Source(
    "Raspberry Pi documentation, BCM2712",
    "Raspberry Pi",
    2025,
    "github.com/raspberrypi/documentation, documentation/asciidoc/computers/processors/bcm2712.adoc",
)
EPYC_7742_PAGE = Source("AMD EPYC 7742 specifications", "AMD", 2019)
EPYC_9654_PAGE = Source("AMD EPYC 9654 specifications", "AMD", 2022)
XEON_8380_ARK = Source("Intel Xeon Platinum 8380, product specifications", "Intel", 2021, "ark.intel.com")
ZEN2_GUIDE = Source("Software Optimization Guide for AMD EPYC 7002 Processors, 56305", "AMD", 2020)
ZEN4_GUIDE = Source("Software Optimization Guide for the AMD Zen4 Microarchitecture, 57647", "AMD", 2023)
INTEL_MANUAL = Source("Intel 64 and IA-32 Architectures Optimization Reference Manual", "Intel", 2023)
PCIE_3 = Source("PCI Express Base Specification 3.0", "PCI-SIG", 2010)
PCIE_4 = Source("PCI Express Base Specification 4.0", "PCI-SIG", 2017)
PCIE_5 = Source("PCI Express Base Specification 5.0", "PCI-SIG", 2019)
PCIE_6 = Source("PCI Express Base Specification 6.0", "PCI-SIG", 2022)
XDR_BRIEF = Source("ConnectX-8 SuperNIC data sheet", "NVIDIA", 2024)
ETHERNET_100 = Source("IEEE 802.3bj-2014", "IEEE", 2014)
ETHERNET_400 = Source("IEEE 802.3bs-2017", "IEEE", 2017)
ETHERNET_800 = Source("IEEE 802.3df-2024", "IEEE", 2024)
NVLINK_PAGE = Source(
    "NVIDIA NVLink and NVLink Switch, specifications of the sixth generation", "NVIDIA", 2026
)
TOMAHAWK_5 = Source("BCM78900 series, Tomahawk 5 Ethernet switch, product page", "Broadcom", 2022)
TOMAHAWK_6 = Source("Broadcom ships Tomahawk 6: first 102.4 Tbit/s switch", "Broadcom", 2025)
TRIDENT_5 = Source("BCM78800 series, Trident 5-X12 Ethernet switch, announcement", "Broadcom", 2023)
NVSWITCH_TALK = Source(
    "The NVLink-Network Switch: NVIDIA's Switch Chip for High Communication-Bandwidth SuperPODs",
    "NVIDIA, Hot Chips 34",
    2022,
)
HDR_BRIEF = Source("ConnectX-6 InfiniBand adapter product brief", "NVIDIA", 2020)
NDR_BRIEF = Source("ConnectX-7 InfiniBand adapter data sheet", "NVIDIA", 2022)
GH200_SHEET = Source("NVIDIA GH200 Grace Hopper Superchip data sheet", "NVIDIA", 2024)
GRACE_PAPER = Source("NVIDIA Grace Hopper Superchip Architecture white paper", "NVIDIA", 2022)
ARITHMETIC = Source("computed from the other figures of the same record", "gpulab", 2025)
MEASURED = Source(
    "counters and times of its own kernels on an H100 SXM5 80 GB",
    "gpulab",
    2026,
    "validation/measured/H100.json",
)
ASSUMED = Source("assumed, until measurements on a GPU say better", "gpulab", 2025)
