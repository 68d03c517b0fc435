"""The judge's own cases for lab 18. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_18_clusters_and_reliability.exercises import _clusters, _fabric, _folder


def _kinds(*names: str) -> tuple[Case, ...]:
    """Cases with names of their own: the questions of a case are seeded by its name."""
    return tuple(Case(f"{name}, others", {"kind": name}) for name in names)


CASES: dict[str, tuple[Case, ...]] = {
    "cluster.max_flow": _kinds(
        "a chain", "several cables", "cut off", "a way back", "two halves", "leaves and spines"
    ),
    "cluster.all_reduce": _clusters((2, 3), (1, 4), (5, 1), (3, 3), (1, 1), (3, 4)),
    "cluster.spread": (
        _fabric("two leaves", 2, 4, 4),
        _fabric("two of six", 9, 6, 3),
        _fabric("more spines", 5, 2, 4),
        _fabric("one spine", 3, 3, 1),
        _fabric("full", 14, 7, 7),
    ),
    "cluster.serve": _kinds(
        "plain", "quantised", "many users", "few key heads", "odd heads", "odd key heads"
    ),
    "cluster.train": _kinds("20 tokens a parameter", "fine-tuning", "long", "mixture", "idle experts"),
    "cluster.interval": (Case("24 h", {"kind": "24 h"}), *_kinds("rare", "often")),
    "cluster.replay": _kinds("none", "one", "while saving", "while restarting", "to the second", "many"),
    "cluster.save": (
        _folder("one shard", 1, 2, "plain"),
        _folder("first", 3, 1),
        _folder("left behind", 2, 3),
        _folder("too many", 3, 2),
        _folder("more digits", 3, 2),
        _folder("the same step", 3, 1),
        _folder("six shards", 6, 3, "plain"),
    ),
    "cluster.reshard": _kinds("halved", "the same", "uneven", "few elements"),
}
