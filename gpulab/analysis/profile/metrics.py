"""What a report can say about a run, as a table.

Each metric is a sum of counts, a ratio of two other metrics, or a fact of the launch. Budgets, reports and
labs name metrics; nothing else knows how they are worked out.

Sums are additive over launches. A ratio is always the ratio of the sums, never a mean of ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from gpulab.foundation.display import Card, Shown, Table
from gpulab.foundation.errors import Message

from .tally import Tally

Way = Literal["counted", "modelled", "measured"]
Value = int | float | None
COMBINE: dict[str, Callable[[Iterable[Any]], Any]] = {"sum": sum, "max": max, "min": min}


class UnknownMetric(Message, LookupError):
    """A name that is in no row of the table; the message names the closest."""


@dataclass(frozen=True)
class Term:
    """`weight` times the sum of a column of the counts over a kind and space of instructions (None: any)."""

    column: str
    kind: str | None = None
    space: str | None = None
    weight: int = 1


@dataclass(frozen=True)
class Metric:
    """One row of the table.

    Exactly one of three says how it is worked out: `terms` (a sum of counts), `ratio` (names of numerator
    and denominator, times `scale`) or `fact` (a value that each launch brings along; `combine` says how
    several launches make one). A ratio over nothing has no value (None).

    `ncu` is Nsight Compute's name where it has one; it counts machine code (SASS), we count PTX. `blame` is
    the sum whose largest part a source line is blamed for; the numerator of a ratio by default.
    """

    name: str
    unit: str
    meaning: str
    terms: tuple[Term, ...] = ()
    ratio: tuple[str, str] | None = None
    scale: float = 1
    fact: str = ""
    combine: Literal["sum", "max", "min"] = "sum"
    way: Way = "counted"
    ncu: str = ""
    blame: str = ""

    @property
    def cause(self) -> Metric | None:
        """The sum of counts in which to look for the costliest line; None for facts of a launch."""
        if self.blame:
            return METRICS[self.blame]
        if self.ratio:
            return METRICS[self.ratio[0]].cause
        return self if self.terms else None


def _sum(name: str, unit: str, meaning: str, *terms: Term, ncu: str = "") -> Metric:
    return Metric(name, unit, meaning, terms=terms, ncu=ncu)


def _ratio(
    name: str,
    unit: str,
    meaning: str,
    over: tuple[str, str],
    scale: float = 1,
    ncu: str = "",
    blame: str = "",
) -> Metric:
    return Metric(name, unit, meaning, ratio=over, scale=scale, ncu=ncu, blame=blame)


def _traffic(space: str, kind: str, tag: str) -> tuple[Metric, ...]:
    """The metrics of one kind of access to global or local memory; `tag` is Nsight Compute's word for it."""
    stem, does = f"{space}_{kind}", f"{space} {kind}s"
    unit = f"l1tex__{{}}_pipe_lsu_mem_{space}_op_{tag}" if tag else ""

    def name(what: str, suffix: str = ".sum") -> str:
        return unit.format(what) + suffix if unit else ""

    return (
        _sum(
            f"{stem}_requests",
            "requests",
            f"{does}: warp instructions with at least one lane",
            Term("requests", kind, space),
            ncu=name("t_requests"),
        ),
        _sum(
            f"{stem}_sectors",
            "sectors",
            f"{does}: distinct 32-byte sectors, summed over requests",
            Term("sectors", kind, space),
            ncu=name("t_sectors"),
        ),
        _sum(
            f"{stem}_ideal_sectors",
            "sectors",
            f"{does}: sectors that the same bytes need without gaps",
            Term("ideal_sectors", kind, space),
        ),
        _sum(
            f"{stem}_bytes",
            "B",
            f"{does}: bytes that the threads asked for",
            Term("bytes", kind, space),
            ncu=f"smsp__sass_data_bytes_mem_{space}_op_{tag}.sum" if tag in ("ld", "st") else "",
        ),
        _ratio(
            f"{stem}_sectors_per_request",
            "sectors/request",
            f"{does}: 32-byte sectors that one warp instruction moves",
            (f"{stem}_sectors", f"{stem}_requests"),
            ncu=name("average_t_sectors_per_request", ".ratio"),
        ),
        _ratio(
            f"{stem}_ideal_sectors_per_request",
            "sectors/request",
            f"{does}: the least sectors that one warp instruction could move",
            (f"{stem}_ideal_sectors", f"{stem}_requests"),
        ),
        _ratio(
            f"{stem}_excess",
            "×",
            f"{does}: sectors moved over the sectors that the same bytes need",
            (f"{stem}_sectors", f"{stem}_ideal_sectors"),
        ),
    )


def _shared(kind: str, tag: str) -> tuple[Metric, ...]:
    """The metrics of one kind of access to shared memory."""
    return (
        _sum(
            f"shared_{kind}_requests",
            "requests",
            f"shared {kind}s: warp instructions with at least one lane",
            Term("requests", kind, "shared"),
            ncu=f"smsp__inst_executed_op_shared_{tag}.sum" if tag in ("ld", "st") else "",
        ),
        _sum(
            f"shared_{kind}_bytes",
            "B",
            f"shared {kind}s: bytes that the threads asked for",
            Term("bytes", kind, "shared"),
        ),
        _sum(
            f"shared_{kind}_wavefronts",
            "wavefronts",
            f"shared {kind}s: passes that the 32 banks need",
            Term("wavefronts", kind, "shared"),
            ncu=f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{tag}.sum",
        ),
        _sum(
            f"shared_{kind}_wavefronts_ideal",
            "wavefronts",
            f"shared {kind}s: passes without a bank conflict",
            Term("ideal_wavefronts", kind, "shared"),
        ),
        _ratio(
            f"shared_{kind}_bank_conflict_ways",
            "ways",
            f"shared {kind}s: passes per pass needed; 1 is no conflict",
            (f"shared_{kind}_wavefronts", f"shared_{kind}_wavefronts_ideal"),
        ),
    )


def _bulk(kind: str, does: str) -> tuple[Metric, ...]:
    """The metrics of one kind of bulk copies between global and shared memory."""
    return (
        _sum(
            f"bulk_{kind}_requests",
            "copies",
            f"{does}: copies that were sent, each by one thread",
            Term("requests", f"bulk_{kind}", "global"),
        ),
        _sum(
            f"bulk_{kind}_bytes",
            "B",
            f"{does}: bytes of global memory; a multicast counts once",
            Term("bytes", f"bulk_{kind}", "global"),
        ),
        _sum(
            f"bulk_{kind}_sectors",
            "sectors",
            f"{does}: distinct 32-byte sectors, summed over copies",
            Term("sectors", f"bulk_{kind}", "global"),
        ),
        _sum(
            f"bulk_{kind}_ideal_sectors",
            "sectors",
            f"{does}: sectors that the same bytes need without gaps",
            Term("ideal_sectors", f"bulk_{kind}", "global"),
        ),
    )


BULK = ("load", "store", "reduction")  # bulk copies that move bytes of global memory

_TABLE: tuple[Metric, ...] = (
    # work
    _sum(
        "instructions",
        "warp instructions",
        "instructions that warps executed",
        Term("warps"),
        ncu="smsp__inst_executed.sum",
    ),
    _sum(
        "thread_instructions",
        "thread instructions",
        "instructions times the lanes that took part",
        Term("threads"),
        ncu="smsp__thread_inst_executed.sum",
    ),
    _sum(
        "guarded_thread_instructions",
        "thread instructions",
        "instructions times the lanes whose guard held",
        Term("active"),
        ncu="smsp__thread_inst_executed_pred_on.sum",
    ),
    _ratio(
        "lanes_active",
        "lanes",
        "lanes that take part in an instruction, of 32",
        ("thread_instructions", "instructions"),
        ncu="smsp__thread_inst_executed_per_inst_executed.ratio",
        blame="divergent_branches",
    ),
    _sum(
        "flops",
        "FLOP",
        "floating-point operations; a fused multiply-add is two, an atomic addition one",
        Term("flops"),
    ),
    _sum(
        "special_functions",
        "operations",
        "approximate exponentials, logarithms, sines, reciprocals and roots of single threads",
        Term("active", "special"),
    ),
    # global and local memory
    *_traffic("global", "load", "ld"),
    *_traffic("global", "store", "st"),
    *_traffic("global", "atomic", "atom"),
    *_traffic("local", "load", "ld"),
    *_traffic("local", "store", "st"),
    _sum(
        "global_requests",
        "requests",
        "global loads and stores: warp instructions",
        Term("requests", "load", "global"),
        Term("requests", "store", "global"),
    ),
    _sum(
        "global_sectors",
        "sectors",
        "global loads and stores: 32-byte sectors",
        Term("sectors", "load", "global"),
        Term("sectors", "store", "global"),
    ),
    _sum(
        "global_bytes",
        "B",
        "bytes that the threads asked of global memory, loads, stores and bulk copies",
        Term("bytes", "load", "global"),
        Term("bytes", "store", "global"),
        *(Term("bytes", f"bulk_{kind}", "global") for kind in BULK),
    ),
    _sum(
        "global_sector_bytes",
        "B",
        "bytes of the sectors that global loads, stores and bulk copies touched, before any cache",
        Term("sectors", "load", "global", 32),
        Term("sectors", "store", "global", 32),
        *(Term("sectors", f"bulk_{kind}", "global", 32) for kind in BULK),
    ),
    _ratio(
        "global_sectors_per_request",
        "sectors/request",
        "global loads and stores: 32-byte sectors that one warp instruction moves",
        ("global_sectors", "global_requests"),
    ),
    _ratio(
        "arithmetic_intensity",
        "FLOP/B",
        "floating-point operations per byte that the threads asked of global memory",
        ("flops", "global_bytes"),
        blame="global_bytes",
    ),
    _ratio(
        "sector_intensity",
        "FLOP/B",
        "floating-point operations per byte of the sectors touched in global memory",
        ("flops", "global_sector_bytes"),
        blame="global_sector_bytes",
    ),
    _sum(
        "local_bytes",
        "B",
        "bytes that the threads asked of local memory (spilled registers, private arrays)",
        Term("bytes", None, "local"),
    ),
    _sum(
        "sectors",
        "sectors",
        "loads and stores of global and local memory: 32-byte sectors",
        *(Term("sectors", kind, space) for space in ("global", "local") for kind in ("load", "store")),
    ),
    _sum(
        "const_requests", "requests", "constant memory: warp instructions", Term("requests", "load", "const")
    ),
    _sum(
        "memory_requests",
        "requests",
        "loads, stores and atomics of every memory: warp instructions",
        *(
            Term("requests", kind, space)
            for space in ("global", "local", "shared", "const")
            for kind in ("load", "store", "atomic")
        ),
    ),
    # bulk copies and clusters
    *_bulk("load", "bulk copies into shared memory"),
    *_bulk("store", "bulk copies into global memory"),
    *_bulk("reduction", "bulk reductions in global memory"),
    _sum(
        "bulk_bytes",
        "B",
        "bytes of global memory that bulk copies moved",
        *(Term("bytes", f"bulk_{kind}", "global") for kind in BULK),
    ),
    _sum(
        "cluster_bytes",
        "B",
        "bytes that threads and bulk copies moved from and to the shared memory of other blocks",
        Term("bytes", None, "cluster"),
    ),
    # shared memory
    *_shared("load", "ld"),
    *_shared("store", "st"),
    *_shared("atomic", "atom"),
    _sum(
        "shared_requests",
        "requests",
        "shared memory: warp instructions with at least one lane",
        Term("requests", None, "shared"),
    ),
    _sum(
        "shared_wavefronts",
        "wavefronts",
        "shared memory: passes that the 32 banks need",
        Term("wavefronts", None, "shared"),
        ncu="memory_l1_wavefronts_shared",
    ),
    _sum(
        "shared_wavefronts_ideal",
        "wavefronts",
        "shared memory: passes without a bank conflict",
        Term("ideal_wavefronts", None, "shared"),
        ncu="memory_l1_wavefronts_shared_ideal",
    ),
    _sum(
        "bank_conflicts",
        "wavefronts",
        "shared memory: passes more than without a bank conflict",
        Term("wavefronts", None, "shared"),
        Term("ideal_wavefronts", None, "shared", -1),
    ),
    _ratio(
        "bank_conflict_ways",
        "ways",
        "shared memory: passes per pass needed; 1 is no conflict",
        ("shared_wavefronts", "shared_wavefronts_ideal"),
        blame="bank_conflicts",
    ),
    # threads together
    _sum(
        "barriers",
        "warp instructions",
        "block barriers, once for each warp that passes",
        Term("warps", "barrier"),
    ),
    _sum(
        "cluster_barriers",
        "warp instructions",
        "barriers of clusters, once for each warp that waits",
        Term("warps", "cluster_barrier"),
    ),
    _ratio("barriers_per_warp", "barriers", "block barriers that one warp passes", ("barriers", "warps")),
    _sum(
        "hand_overs",
        "warp instructions",
        "block barriers, mbarriers, atomics and strong loads, by which warps can wait for one another",
        Term("warps", "barrier"),
        Term("warps", "mbarrier"),
        Term("strong", "load"),
        Term("warps", "atomic"),
    ),
    _sum(
        "async_bytes",
        "B",
        "cp.async: bytes that threads waited for",
        Term("bytes", "copy_wait"),
    ),
    _sum(
        "async_bytes_behind",
        "B²",
        "cp.async: bytes that a thread waited for, times its bytes that were still on their way then",
        Term("behind", "copy_wait"),
    ),
    _ratio(
        "async_bytes_in_flight",
        "B/thread",
        "cp.async: bytes of a thread still on their way when it waits, averaged over the bytes waited for",
        ("async_bytes_behind", "async_bytes"),
    ),
    _sum(
        "warpgroup_products",
        "warp instructions",
        "wgmma: products of matrices that warpgroups ask for, once for each of their four warps",
        Term("warps", "matrix"),
    ),
    _sum(
        "warpgroup_waits",
        "warp instructions",
        "wgmma: waits for such products",
        Term("warps", "matrix_wait"),
    ),
    _sum(
        "warpgroup_bytes",
        "bytes",
        "wgmma: bytes of shared memory that the tensor cores read by themselves",
        Term("bytes", "matrix", "shared"),
    ),
    _sum(
        "tensor_products",
        "instructions",
        "tcgen05.mma: products of matrices that single threads ask for",
        Term("requests", "tensor_product"),
    ),
    _sum(
        "tensor_product_bytes",
        "bytes",
        "tcgen05.mma: bytes of shared memory that the tensor cores read by themselves",
        Term("bytes", "tensor_product", "shared"),
    ),
    _sum(
        "tensor_memory_load_bytes",
        "bytes",
        "tcgen05.ld: bytes from Tensor Memory to registers",
        Term("bytes", "tensor_load", "tensor"),
    ),
    _sum(
        "tensor_memory_store_bytes",
        "bytes",
        "tcgen05.st: bytes from registers to Tensor Memory",
        Term("bytes", "tensor_store", "tensor"),
    ),
    _sum(
        "warp_syncs",
        "warp instructions",
        "shuffles, votes, matches and warp barriers",
        Term("warps", "shuffle"),
        Term("warps", "warp_sync"),
    ),
    _sum(
        "atomics",
        "operations",
        "atomic operations of single threads, in any memory",
        Term("active", "atomic"),
    ),
    _sum(
        "global_atomics",
        "operations",
        "atomic operations of single threads, global",
        Term("active", "atomic", "global"),
    ),
    _sum(
        "shared_atomics",
        "operations",
        "atomic operations of single threads, shared",
        Term("active", "atomic", "shared"),
    ),
    _sum(
        "shared_atomic_passes",
        "passes",
        "shared atomics: warp instructions, and one more for each lane that meets another at its address",
        Term("requests", "atomic", "shared"),
        Term("conflicts", "atomic", "shared"),
    ),
    _sum(
        "atomic_conflicts",
        "operations",
        "atomics beyond the first on the same address in one warp",
        Term("conflicts", "atomic"),
    ),
    # branches
    _sum(
        "branches",
        "branches",
        "branches with a condition",
        Term("warps", "branch"),
    ),
    _sum(
        "uniform_branches",
        "branches",
        "branches whose lanes all went one way",
        Term("uniform", "branch"),
        ncu="smsp__sass_branch_targets_threads_uniform.sum",
    ),
    _sum(
        "divergent_branches",
        "branches",
        "branches whose lanes went both ways",
        Term("warps", "branch"),
        Term("uniform", "branch", weight=-1),
        ncu="smsp__sass_branch_targets_threads_divergent.sum",
    ),
    _ratio(
        "branch_efficiency",
        "%",
        "share of the branches with a condition whose lanes all went one way",
        ("uniform_branches", "branches"),
        scale=100,
        blame="divergent_branches",
        ncu="smsp__sass_average_branch_targets_threads_uniform.pct",
    ),
    # the launches themselves
    Metric("launches", "launches", "kernel launches", fact="launches"),
    Metric("blocks", "blocks", "thread blocks", fact="blocks", ncu="launch__grid_size"),
    Metric("threads", "threads", "threads", fact="threads", ncu="launch__thread_count"),
    Metric("warps", "warps", "warps", fact="warps", ncu="sm__warps_launched.sum"),
    Metric(
        "block_load_bytes",
        "B",
        "bytes that the block that has most loads or copies in; summed over launches, which run in turn",
        fact="block_load_bytes",
    ),
    Metric(
        "block_hand_overs",
        "hand-overs",
        "hand-overs of the block that has most, once for each warp; summed over launches, which run in turn",
        fact="block_hand_overs",
        blame="hand_overs",
    ),
    Metric(
        "mixed_warps",
        "warps",
        "warps that both load from global memory and store to it, or send copies that do",
        fact="mixed_warps",
    ),
    Metric(
        "mbarrier_phases",
        "phases",
        "phases of the mbarrier that has most, as far as a thread saw that they were over",
        fact="mbarrier_phases",
    ),
    Metric(
        "bulk_bytes_arrived",
        "B",
        "bulk copies: bytes that blocks waited for at mbarriers",
        fact="bulk_bytes_arrived",
    ),
    Metric(
        "bulk_bytes_behind",
        "B²",
        "bulk copies: bytes that a block waited for, times its bytes that were still on their way then",
        fact="bulk_bytes_behind",
    ),
    _ratio(
        "bulk_bytes_in_flight",
        "B/block",
        "bulk copies: bytes of a block still on their way when it waits, averaged over the bytes waited for",
        ("bulk_bytes_behind", "bulk_bytes_arrived"),
    ),
    Metric(
        "warpgroup_products_made",
        "products",
        "wgmma: products that warpgroups waited for",
        fact="warpgroup_products_made",
    ),
    Metric(
        "warpgroup_products_behind",
        "products²",
        "wgmma: products that a warpgroup waited for, times its products that were still in flight then",
        fact="warpgroup_products_behind",
    ),
    _ratio(
        "warpgroup_products_in_flight",
        "products",
        "wgmma: products of a warpgroup still in flight behind a wait, averaged over those it was for",
        ("warpgroup_products_behind", "warpgroup_products_made"),
    ),
    Metric(
        "warpgroup_products_most",
        "products",
        "wgmma: products of the warpgroup that has most; summed over launches, which run in turn",
        fact="warpgroup_products_most",
    ),
    Metric(
        "idle_arrivals",
        "arrivals",
        "arrivals at mbarriers by threads whose warpgroup has multiplied and has no product in flight",
        fact="idle_arrivals",
    ),
    Metric(
        "registers",
        "registers",
        "registers per thread, as ptxas allots them",
        fact="registers",
        combine="max",
        ncu="launch__registers_per_thread",
    ),
    Metric(
        "shared_bytes",
        "B",
        "shared memory per block, static and dynamic",
        fact="shared_bytes",
        combine="max",
        ncu="launch__shared_mem_per_block",
    ),
    Metric(
        "spill_bytes",
        "B",
        "stores plus loads of registers spilled to local memory, per thread, as ptxas adds them",
        fact="spill_bytes",
        combine="max",
    ),
    Metric(
        "occupancy",
        "%",
        "resident warps per SM, of the most that fit",
        fact="occupancy",
        combine="min",
        way="modelled",
        ncu="sm__maximum_warps_per_active_cycle_pct",
    ),
)


class MetricTable(Shown, dict[str, Metric]):
    """The metrics by name; shows itself as a table of names, units and meanings."""

    def card(self) -> Card:
        rows = tuple((metric.name, metric.unit, metric.meaning) for metric in self.values())
        return Card((Table(("metric", "unit", "meaning"), rows, frozenset({0, 1, 2})),))


METRICS = MetricTable({metric.name: metric for metric in _TABLE})


def find_metric(name: str) -> Metric:
    """The row of that name. Raises UnknownMetric, which names the closest."""
    if name in METRICS:
        return METRICS[name]
    close = get_close_matches(name, METRICS, n=2, cutoff=0.5)
    hint = f"; did you mean {' or '.join(close)}?" if close else "; gpulab.profile.METRICS lists them all"
    raise UnknownMetric(f"there is no metric {name!r}{hint}")


def value(name: str, tally: Tally, facts: Mapping[str, Value]) -> Value:
    """The value of a metric from summed counts and combined facts; None where there is nothing to count."""
    metric = find_metric(name)
    if metric.fact:
        return facts.get(metric.fact)
    if metric.ratio:
        top, bottom = (value(part, tally, facts) for part in metric.ratio)
        return None if top is None or not bottom else metric.scale * top / bottom
    return sum(term.weight * tally.total(term.column, term.kind, term.space) for term in metric.terms)


def combine(name: str, values: list[Value]) -> Value:
    """One value of a fact from its values in several launches; None if any launch lacks it."""
    known = [v for v in values if v is not None]
    if not known or len(known) < len(values):
        return None
    return COMBINE[METRICS[name].combine](known)
