"""The judge's own cases for lab 20 B. Budgets are counted at every case."""

from __future__ import annotations

from gpulab.checks.spec import Case


def _kinds(*names: str) -> tuple[Case, ...]:
    """Cases with names of their own: the questions of a case are seeded by its name."""
    return tuple(Case(f"{name}, others", {"kind": name}) for name in names)


CASES: dict[str, tuple[Case, ...]] = {
    "cluster.mig": _kinds(
        "nothing",
        "one kind",
        "four and three",
        "threes and twos",
        "double memory",
        "the last slice",
        "a mixture",
        "many",
        "many threes and twos",
    ),
    "cluster.pack": _kinds(
        "one node", "threes", "light threes", "whole nodes", "heavy memory", "heavy and threes", "many"
    ),
    "cluster.gang": _kinds(
        "one by one", "all at once", "whole cluster", "who is passed", "wide and narrow", "a long queue"
    ),
    "cluster.fair": _kinds(
        "nine and eighteen",
        "one is out",
        "few wait",
        "weights",
        "ties",
        "no GPUs",
        "preemption",
    ),
    "cluster.autoscale": _kinds("a step", "no delay", "short dips", "long dips", "to nothing", "half a day"),
    "cluster.manifest": _kinds("one GPU", "several GPUs", "a large model", "a job"),
}
