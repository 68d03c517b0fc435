"""The judge's own cases for lab 16. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_16_sharded_training.exercises import (
    TRANSLATED,
    named_cases,
    ranks_case,
    small_transformer_case,
)

CASES: dict[str, tuple[Case, ...]] = {
    "shard.memory": named_cases("any", "one rank"),
    "shard.split": (
        *named_cases("any", "one tensor", "an empty tensor", "more ranks than numbers"),
        small_transformer_case(6),
    ),
    "shard.zero2_step": (
        ranks_case(2, parameters=6, step=4),
        ranks_case(3, parameters=27, step=1),
        ranks_case(4, parameters=768, step=2),
    ),
    "shard.gather_layers": (
        ranks_case(2, layers=2, batch=2, width=6),
        ranks_case(3, layers=3, batch=5, width=9),
        ranks_case(4, layers=5, batch=6, width=24),
    ),
    "shard.clip": (
        ranks_case(2, parameters=7),
        ranks_case(3, parameters=6, times=0),
        ranks_case(2, parameters=10, zero=0),
        ranks_case(4, parameters=802),
    ),
    "shard.offload": named_cases("any", "room for one", "one layer", "room for all", "12 layers, room for 4"),
    "shard.recompute": named_cases(
        "any", "one layer", "room for inputs", "room for all", "GPT-3 in 60 GB, a long sequence"
    ),
    "shard.config": named_cases(
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
    "shard.translate": named_cases(*TRANSLATED),
}
