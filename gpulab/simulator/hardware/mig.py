"""Multi-Instance GPU: the slices of a GPU, and where an instance of a profile may lie.

The geometry is that of GA100 and GH100 (A100, H100): 7 compute slices and 8 memory slices. Placements are
counted in memory slices, and they alone decide what fits: no set of placements that keeps apart in memory
asks for more than 7 compute slices. Names are those of the models with 80 GB.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import sources
from .figure import Figure

COMPUTE_SLICES = Figure(7, "slices", sources.MIG_GUIDE)
MEMORY_SLICES = Figure(8, "slices", sources.MIG_GUIDE)


@dataclass(frozen=True)
class MigProfile:
    """One kind of instance.

    `compute` and `memory` are slices; `starts` the memory slices at which an instance may begin. `sms` are
    the SMs of an instance on GPUs for which the driver's listing is known.
    """

    name: str
    compute: Figure
    memory: Figure
    starts: tuple[int, ...]
    sms: dict[str, Figure]


def _profile(name: str, compute: int, memory: int, starts: tuple[int, ...], **sms: int) -> MigProfile:
    return MigProfile(
        name,
        Figure(compute, "slices", sources.MIG_GUIDE),
        Figure(memory, "slices", sources.MIG_GUIDE),
        starts,
        {gpu: Figure(count, "SMs", sources.MIG_GUIDE) for gpu, count in sms.items()},
    )


MIG_PROFILES: dict[str, MigProfile] = {
    profile.name: profile
    for profile in (
        _profile("1g.10gb", 1, 1, (0, 1, 2, 3, 4, 5, 6), A100=14, H100=16),
        _profile("1g.20gb", 1, 2, (0, 2, 4, 6)),
        _profile("2g.20gb", 2, 2, (0, 2, 4), A100=28, H100=32),
        _profile("3g.40gb", 3, 4, (0, 4), A100=42, H100=60),
        _profile("4g.40gb", 4, 4, (0,), A100=56, H100=64),
        _profile("7g.80gb", 7, 8, (0,), A100=98, H100=132),
    )
}
