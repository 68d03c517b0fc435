"""What a program's kernels did: launches and counts by kernel, as a table, as JSON, and beside a budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpulab.analysis.profile.metrics import value
from gpulab.analysis.profile.tally import Tally, total
from gpulab.foundation.errors import Message
from gpulab.simulator import device as devices
from gpulab.simulator import simt
from gpulab.simulator.compile import CompiledKernel
from gpulab.simulator.observe import Counters

# Counts of a kernel that are sums over its launches, do not depend on a schedule, and cost time on a GPU.
LISTED = (
    "launches",
    "instructions",
    "global_load_sectors",
    "global_store_sectors",
    "shared_wavefronts",
    "flops",
)
LONGEST_NAME = 60  # characters; templates of C++ libraries have names of many hundred
FORMAT = 1  # of a budget's file

Counts = dict[str, dict[str, int]]  # kernel → metric → count


class WrongBudget(Message):
    """The file holds no budget; the message says what is wrong with it."""


@dataclass
class Ledger:
    """Counts the launches of a device while `standing` is entered."""

    device: devices.SimulatedDevice
    _seen: list[tuple[CompiledKernel, Counters]] = field(default_factory=list)

    @contextmanager
    def standing(self) -> Iterator[None]:
        """While it is entered, every launch is counted."""

        def make(launch: devices.Launch) -> simt.Observer:
            self._seen.append((launch.kernel, Counters()))
            return self._seen[-1][1]

        with self.device.observed(make):
            yield

    def counts(self) -> Counts:
        """The counts of all launches that came to their end, by kernel in the order of first launches."""
        tallies: dict[str, list[Tally]] = {}
        for kernel, counters in self._seen:
            if counters.counts is not None:
                tallies.setdefault(kernel.name, []).append(Tally.of(counters.counts))
        return {
            kernel: {"launches": len(each)} | {m: _whole(value(m, total(each), {})) for m in LISTED[1:]}
            for kernel, each in tallies.items()
        }

    def compilers(self) -> dict[str, str]:
        """Which compiler made each kernel, such as ``NVVM 13.5``: counts are exact for its PTX."""
        return {kernel.name: kernel.compiler for kernel, _ in self._seen}


def _whole(number: Any) -> int:
    return round(number or 0)


def table(counts: Counts, gpu: str) -> str:
    """A row for each kernel and a column for each metric."""
    if not counts:
        return f"gpulab run: the program launched no kernel on the simulated {gpu}"
    heads = ["kernel", *(m.replace("_", " ") for m in LISTED)]
    rows = [[_short(kernel), *(f"{each[m]:,}" for m in LISTED)] for kernel, each in counts.items()]
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]

    def line(row: list[str]) -> str:
        cells = (text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))
        return "   ".join([row[0].ljust(widths[0]), *cells]).rstrip()

    return "\n".join([f"gpulab run: counted on a simulated {gpu}", *map(line, (heads, *rows))])


def _short(kernel: str) -> str:
    """A kernel's name, without the arguments of its template where these would fill the line.

    >>> _short("triton_per_fused_" + 6 * "native_layer_norm_" + "1")
    '…_norm_native_layer_norm_native_layer_norm_native_layer_norm_1'
    """
    if len(kernel) <= LONGEST_NAME:
        return kernel
    name, template, _ = kernel.partition("<")
    shown = name if len(name) <= LONGEST_NAME else f"…{name[-LONGEST_NAME:]}"
    return f"{shown}<…>" if template else shown


def write_budget(path: Path, counts: Counts, gpu: str) -> None:
    """Write the counts of this run as the budget of later ones."""
    text = json.dumps({"format": FORMAT, "gpu": gpu, "kernels": counts}, indent=1)
    path.write_text(f"{text}\n", encoding="utf-8")


def read_budget(path: Path, gpu: str) -> Counts:
    """The counts that a file allows each kernel. Raises WrongBudget where it holds none, or another GPU's."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise WrongBudget(
            f"there is no budget {path}; `gpulab run --write-budget {path} …` writes one from a run"
        ) from None
    except (OSError, ValueError) as error:
        raise WrongBudget(f"{path} is no budget: {error}") from None
    kernels = found.get("kernels") if isinstance(found, dict) else None
    if not isinstance(kernels, dict) or found.get("format") != FORMAT:
        raise WrongBudget(f"{path} is no budget: it has no `kernels` in format {FORMAT}")
    for kernel, each in kernels.items():
        if not isinstance(each, dict) or not all(isinstance(limit, int) for limit in each.values()):
            raise WrongBudget(f"{path}: the counts of {kernel!r} are not whole numbers by metric")
        if unknown := sorted(set(each) - set(LISTED)):
            known = ", ".join(LISTED)
            raise WrongBudget(f"{path}: {kernel} has a budget for {unknown[0]!r}; known are {known}")
    if found.get("gpu") != gpu:
        raise WrongBudget(f"{path} is a budget for {found.get('gpu')!r}, and this run simulates {gpu!r}")
    return kernels


def over_budget(limits: Counts, counts: Counts) -> list[str]:
    """A sentence for each count above its limit, and for each kernel without limits."""
    sentences = [f"{kernel} has no budget" for kernel in counts if kernel not in limits]
    for kernel in counts.keys() & limits.keys():
        for metric, limit in limits[kernel].items():
            if counts[kernel][metric] > limit:
                name = metric.replace("_", " ")
                sentences.append(f"{kernel}: {counts[kernel][metric]:,} {name}; the budget is {limit:,}")
    return sorted(sentences)
