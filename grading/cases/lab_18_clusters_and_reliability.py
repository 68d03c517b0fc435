"""The judge's own cases for lab 18. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_18_clusters_and_reliability.exercises import cluster_cases, fabric_case, folder_case


def _kinds(*names: str) -> tuple[Case, ...]:
    """Cases with names of their own: the questions of a case are seeded by its name."""
    return tuple(Case(f"{name}, others", {"kind": name}) for name in names)


CASES: dict[str, tuple[Case, ...]] = {
    "cluster.max_flow": _kinds(
        "a chain", "several cables", "cut off", "a way back", "two halves", "leaves and spines"
    ),
    "cluster.switches": _kinds(
        "one switch", "full", "two levels", "uneven spines", "three levels", "too many"
    ),
    "cluster.all_reduce": cluster_cases((2, 3), (1, 4), (5, 1), (3, 3), (1, 1), (3, 4)),
    "cluster.spread": (
        fabric_case("two leaves", 2, 4, 4),
        fabric_case("two of six", 9, 6, 3),
        fabric_case("more spines", 5, 2, 4),
        fabric_case("one spine", 3, 3, 1),
        fabric_case("full", 14, 7, 7),
    ),
    "cluster.serve": _kinds(
        "plain", "quantised", "many users", "few key heads", "odd heads", "odd key heads"
    ),
    "cluster.train": _kinds("20 tokens per parameter", "fine-tuning", "long", "mixture", "idle experts"),
    "cluster.interval": (Case("24 h", {"kind": "24 h"}), *_kinds("rare", "often")),
    "cluster.replay": _kinds("none", "one", "while saving", "while restarting", "to the second", "many"),
    "cluster.save": (
        folder_case("one shard", 1, 2, "plain"),
        folder_case("first", 3, 1),
        folder_case("left behind", 2, 3),
        folder_case("too many", 3, 2),
        folder_case("more digits", 3, 2),
        folder_case("the same step", 3, 1),
        folder_case("six shards", 6, 3, "plain"),
    ),
    "cluster.reshard": _kinds("halved", "the same", "uneven", "few elements"),
}
