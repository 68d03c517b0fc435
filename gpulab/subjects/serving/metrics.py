"""What a service is judged by: times to the first token and between tokens, rates, and goodput.

- **TTFT**, time to first token: from the arrival to the first token.
- **TPOT**, time per output token: from the first token to the last, divided by the tokens behind the first.
- **gaps**: the times from each token to the next; their largest is what a reader sees as a stall.
- **Goodput**: requests per second that keep all limits of a service-level objective (**SLO**). So defined by
  Y. Zhong et al., "DistServe", OSDI 2024, who then ask for the rate at which 90 % keep them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from .engine import Life, Run


@dataclass(frozen=True)
class SLO:
    """Limits in seconds that a request has to keep, all of them. None: no such limit."""

    ttft: float | None = None
    tpot: float | None = None
    latency: float | None = None
    gap: float | None = None

    def kept(self, life: Life) -> bool:
        """Did this request keep all limits? One that is not through did not."""
        if not life.ended:
            return False
        told = (
            (self.ttft, ttft(life)),
            (self.tpot, tpot(life)),
            (self.latency, latency(life)),
            (self.gap, max(gaps(life), default=0.0)),
        )
        return all(limit is None or value <= limit for limit, value in told)


def ttft(life: Life) -> float:
    """Time to the first token, seconds. Raises IndexError before there is one."""
    return life.tokens[0] - life.request.arrival


def latency(life: Life) -> float:
    """Time to the last token, seconds."""
    return life.tokens[-1] - life.request.arrival


def tpot(life: Life) -> float:
    """Seconds per token behind the first; 0 for a single one."""
    return (life.tokens[-1] - life.tokens[0]) / max(1, life.made - 1)


def gaps(life: Life) -> list[float]:
    """Seconds from each token to the next."""
    return [after - before for before, after in pairwise(life.tokens)]


def percentile(values: Iterable[float], percent: float) -> float:
    """The nearest-rank percentile: the smallest value that at least `percent` % do not exceed.

    Always one of the values, never between two. Raises ValueError without a value, or for a percentage that
    is not above 0 and at most 100.
    """
    ordered = sorted(values)
    if not ordered or not 0 < percent <= 100:
        raise ValueError(f"no {percent:g}th percentile of {len(ordered)} values")
    # A percentage such as 99.9 is no sum of powers of two: 99.9/100 · 1000 must not come out above 999.
    return ordered[ceil(round(percent * len(ordered) / 100, 9)) - 1]


def span(run: Run) -> float:
    """Seconds from the first arrival to the last token."""
    return run.end - min((life.request.arrival for life in run.lives), default=0.0)


def throughput(run: Run) -> float:
    """Tokens of output per second."""
    return sum(life.made for life in run.lives) / span(run)


def attainment(run: Run, slo: SLO) -> float:
    """The share of all requests that keep the SLO, 0 to 1."""
    return sum(map(slo.kept, run.lives)) / max(1, len(run.lives))


def goodput(run: Run, slo: SLO, seconds: float | None = None) -> float:
    """Requests per second that keep the SLO; over the run's `span`, or so many seconds."""
    return sum(map(slo.kept, run.lives)) / (seconds or span(run))


def summary(run: Run, slo: SLO | None = None, percents: Sequence[float] = (50, 99)) -> dict[str, float]:
    """The figures of a run by name, times in seconds."""
    done = [life for life in run.lives if life.ended]
    told: dict[str, float] = {"requests": len(done), "steps": len(run.steps), "seconds": run.end}
    for name, measure in (("TTFT", ttft), ("TPOT", tpot), ("latency", latency)):
        values = [measure(life) for life in done]
        told |= {f"{name} p{percent:g}": percentile(values, percent) for percent in percents if values}
    told["tokens/s"] = throughput(run) if done else 0.0
    if slo:
        told |= {"SLO kept": attainment(run, slo), "goodput": goodput(run, slo)}
    return told
