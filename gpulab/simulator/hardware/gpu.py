"""What a data sheet says of one GPU, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .capability import Capability, capability
from .figure import Figure
from .sources import ARITHMETIC


@dataclass(frozen=True, eq=False)  # one record per GPU: equal means the same, so that it can be a key
class GPU:
    """One GPU. Every figure has a unit and a source; what no source states is None.

    Units: Hz, B, B/s, FLOP/s (integer rates OP/s), cycles, W. An FMA counts as two operations.

    `tensor_fma` is the number of dense fused multiply-adds per clock and SM, by dtype; `tensor_dense` and
    `tensor_sparse` (2:4 structured) are the vendor's rates, accumulated in float32 (int32 for integers).
    `stated` are the vendor's rates of the ordinary lanes. Peaks are computed by `peak`; the stated rates
    are there to check it. `dram_seen` and `l2_seen` are bandwidths that a benchmark reached. dtypes:
    float64, float32, float16, bfloat16, tfloat32, float8, float4, int32, int8, int4.

    `gpcs` and `tpcs` count the processor clusters and the pairs of SMs in the product; `bus_bits` is the
    width of the memory bus, `die_area` is in mm². `host_link` and `gpu_link` name entries of
    `gpulab.hardware.LINKS`, empty where there is none.
    """

    name: str
    product: str
    architecture: str
    cc: tuple[int, int]
    year: Figure
    sms: Figure
    fp32_lanes: Figure
    fp64_lanes: Figure
    int32_lanes: Figure
    tensor_cores: Figure
    boost_clock: Figure
    tensor_clock: Figure
    l1_bytes: Figure
    l2_bytes: Figure
    dram_bytes: Figure
    dram_bandwidth: Figure
    tdp: Figure
    tensor_fma: Mapping[str, Figure]
    tensor_dense: Mapping[str, Figure]
    tensor_sparse: Mapping[str, Figure] = field(default_factory=dict)
    stated: Mapping[str, Figure] = field(default_factory=dict)
    dram_seen: Figure | None = None
    l2_seen: Figure | None = None
    shared_latency: Figure | None = None
    l1_latency: Figure | None = None
    l2_latency: Figure | None = None
    dram_latency: Figure | None = None
    gpcs: Figure | None = None
    tpcs: Figure | None = None
    bus_bits: Figure | None = None
    die_area: Figure | None = None
    transistors: Figure | None = None
    host_link: str = ""
    gpu_link: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def capability(self) -> Capability:
        """The limits of this GPU's compute capability."""
        return capability(self.cc)

    def lanes(self, dtype: str) -> Figure:
        """Lanes per SM for a dtype that the ordinary pipelines compute: float32, float64 or int32."""
        lanes = {"float32": self.fp32_lanes, "float64": self.fp64_lanes, "int32": self.int32_lanes}
        if dtype not in lanes:
            raise ValueError(f"{self.name} has no lanes listed for {dtype!r}; listed are {', '.join(lanes)}")
        return lanes[dtype]

    def peak(self, dtype: str = "float32", *, tensor: bool = False, sparse: bool = False) -> Figure:
        """The peak rate in FLOP/s (OP/s for integers): SMs × FMA per clock and SM × 2 × clock.

        `tensor` asks for the tensor cores, `sparse` for 2:4 structured sparsity on them, which doubles
        the rate and is never included unless asked for. Raises ValueError where the GPU has no such rate.
        """
        unit = "OP/s" if dtype.startswith("int") else "FLOP/s"
        if not tensor:
            if sparse:
                raise ValueError("2:4 sparsity is a feature of the tensor cores: pass tensor=True as well")
            return Figure(
                int(self.sms) * int(self.lanes(dtype)) * 2 * float(self.boost_clock), unit, ARITHMETIC
            )
        if dtype not in self.tensor_fma:
            known = ", ".join(self.tensor_fma)
            raise ValueError(f"the tensor cores of {self.name} have no rate for {dtype!r}; they have {known}")
        if sparse and dtype not in self.tensor_sparse:
            raise ValueError(f"{self.name} has no sparse tensor rate for {dtype!r}")
        # float64 keeps the full clock; only the other formats lower it (H100: 66.9 TFLOP/s are at 1.98 GHz).
        clock = self.boost_clock if dtype == "float64" else self.tensor_clock
        rate = int(self.sms) * int(self.tensor_fma[dtype]) * 2 * float(clock)
        return Figure(rate * (2 if sparse else 1), unit, ARITHMETIC)

    def __str__(self) -> str:
        return self.name
