"""The judge's own cases for lab 16. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_16_sharded_training.exercises import _ranks, _small_transformer, _whats

CASES: dict[str, tuple[Case, ...]] = {
    "shard.memory": _whats("any", "one rank"),
    "shard.split": (
        *_whats("any", "one tensor", "an empty tensor", "more ranks than numbers"),
        _small_transformer(6),
    ),
    "shard.zero2_step": (
        _ranks(2, parameters=6, step=4),
        _ranks(3, parameters=27, step=1),
        _ranks(4, parameters=768, step=2),
    ),
    "shard.gather_layers": (
        _ranks(2, layers=2, batch=2, width=6),
        _ranks(3, layers=3, batch=5, width=9),
        _ranks(4, layers=5, batch=6, width=24),
    ),
    "shard.clip": (
        _ranks(2, parameters=7),
        _ranks(3, parameters=6, times=0),
        _ranks(2, parameters=10, zero=0),
        _ranks(4, parameters=802),
    ),
    "shard.offload": _whats("any", "room for one", "one layer", "room for all", "12 layers, room for 4"),
    "shard.recompute": _whats(
        "any", "one layer", "room for inputs", "room for all", "GPT-3 in 60 GB, a long sequence"
    ),
    "shard.config": _whats(
        "any",
        "common mistakes",
        "nothing offloaded",
        "offload and stage",
        "pipeline and stage",
        "every scheduler",
        "does not divide",
        "GPUs left over",
        "two of three",
    ),
}
