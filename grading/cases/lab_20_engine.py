"""The judge's own cases for part A of lab 20. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case


def _kinds(*names: str) -> tuple[Case, ...]:
    """Cases with names of their own: the questions of a case are seeded by its name."""
    return tuple(Case(f"{name}, others", {"kind": name}) for name in names)


CASES: dict[str, tuple[Case, ...]] = {
    "serve.queue": _kinds("M/M/1", "M/D/1", "long tails", "too many", "a limit that nothing keeps"),
    "serve.measure": _kinds("one", "few", "plain", "a late sender", "single tokens", "errors", "all fail"),
    "serve.admit": _kinds("few blocks", "over time", "one slot", "64 in 8 slots"),
    "serve.chunk": _kinds("H100", "L4", "all"),
    "serve.preempt": _kinds("two that grow", "few slots", "a small crowd", "a crowd"),
    "serve.prefix": _kinds(
        "a common start",
        "conversations",
        "the same block elsewhere",
        "asked again",
        "shorter than a block",
        "not all fits",
        "longer than the cache",
    ),
}
