"""Lab 16: what its nine exercises ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| memory | memory(parameters, ranks, stage) | what each stage divides | answers | – | – | 2 |
| split | split(sizes, ranks): pieces | flat and even | longest share | 262,144 | 115,264 | 3 |
| | | | pieces | 132 | 36 | |
| zero2_step | zero2_step(gradient, …) | 16 → 5.5 B a parameter | busiest sender | 2.25 S | 1.5 S | 5 |
| gather | gather_layers(x, slope, parts) | a layer when it is needed | busiest sender | 3 S | 2.25 S | 5 |
| | | and not kept | layers gathered | 4 | 7 | |
| clip | clip(gradient, limit) | a norm is of the whole | busiest sender | 3 shards | 12 B | 3 |
| offload | offload(layers, fetch, compute, room) | fetch ahead, keep some | over the best | 67 % | 0 | 5 |
| | | | fetches | 24 | 20 | |
| recompute | recompute(layers, …, memory) | what to keep, what to do again | over the least | 69 % | 0 | 4 |
| config | config(settings, gpus, tensor, …) | the batch triple, keys that exist | answers | – | – | 3 |
| translate | translate(command, gpus) | one run in three spellings | answers | – | – | 3 |

Derivations. N ranks, Ψ parameters, S the bytes of what an all-reduce would carry; a ring makes each rank send
(N − 1)/N · S for a reduce-scatter, as much for an all-gather, and both for an all-reduce (lab 15).

**memory**: weights and gradients in 16 bits, K = 12 bytes of float32 for Adam (master weight, two moments).
DDP (2 + 2 + K) Ψ; stage 1 divides K Ψ by N, stage 2 also the gradients' 2 Ψ, stage 3 also the weights' 2 Ψ
(S. Rajbhandari et al., arXiv:1910.02054, section 3).

**split**: of n tensors and N ranks: cut where the flat array is at a multiple of ⌈total/N⌉. Each of the
N − 1 cuts makes at most one piece more: n + N − 1. The small transformer of the last case has an embedding
of 262,144 and 461,056 numbers in 33 tensors; the embedding whole is 262,144, a quarter of all 115,264. Each
tensor in four pieces: 132.

**zero2_step**: S = 2 Ψ bytes of gradients there, S of weights back: 2 (N − 1)/N · S, DDP's traffic. At four
ranks 2 + (2 + 12)/4 = 5.5 bytes a parameter. All-reduce and then all-gather: 3 (N − 1)/N · S.

**gather**: each layer's weights forward, again backward, and its gradients: 3 (N − 1)/N · S, half more than
DDP. The last layer need not be gathered again: 2 L − 1 gathers of L layers, and 2.75 (N − 1)/N · S at four
layers. All-reduce of gradients instead of reduce-scatter: 4 (N − 1)/N · S. Layers that are kept from forward
take L gathers; that is another trade. Layers are counted by the bytes that all-gathers carry, because an
empty one is a call, too. The tolerance is about ten times the error of float32's own arithmetic, and less
than half of what weights cut to three bytes cause; so they do not pass.

**clip**: one number a rank has to be added up: a ring all-reduce of 4 bytes is 8 from the busiest rank, and a
byte for each of its four messages with nothing in them. Two numbers are 24. Gathering the gradient takes
N − 1 shards.

Bytes earn all points or none here: what lies between the limit and the obvious solution could also be
reached by shorter numbers.

**offload**: with room for m of L layers, L + (L − m) fetches, because the last m are there when backward
begins. Fetch after each use: 2 L. At the last case (12 layers, fetch 3, compute 2, room for 4) forward waits
for the link, 12 · 3 + 2, backward takes 12 · 4: 86. One after the other: 24 · 3 + 12 · 6 = 144, 67 % more.
tests/labs/test_16 compares the reference with all plans of small cases.

**recompute**: three choices a layer (V. Korthikanti et al., arXiv:2205.05198): keep all, s b h (34 + 5 a s/h)
bytes; all but what attention makes of scores, 34 s b h, for 4 b s² h FLOPs again; the input, 2 s b h, for
24 b s h² + 4 b s² h again. Layers are alike, so counts are enough, and trying all is short. Counted in
percent of a forward pass over the least. Dropping scores everywhere before any whole layer is not always the
least: of L layers with s = 16 h and room for L − 1 whole ones and an input it drops the scores of two.

**config**: DeepSpeed's rules (its documentation "DeepSpeed Configuration JSON", `lr_schedules.py`,
`config.py` and `pipe/engine.py` in August 2026), those that are listed in the notebook.

**translate**: Megatron's 8 · 4 on 1,024 GPUs leaves 32 data-parallel ranks, which no file names; 1,536
samples in micro-batches of one are 48 accumulation steps, which only DeepSpeed's file names. On 1,000 GPUs
nothing holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.evidence import AnsweredCases, Communication
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Sizes, several
from gpulab.subjects.distributed.traffic import Traffic

LAB = "16"
LIMIT = 2.5  # of the norm that `clip` is asked for
Numbers = np.random.Generator


def named_cases(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"what": name}) for name in names)


# ---------------------------------------------------------------- memory, pieces


def memory_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Parameters, of which each rank gets as many; ranks; stage."""
    match sizes["what"]:
        case "one rank":
            pairs = [(1000, 1)]
        case "7.5 billion on 64":
            pairs = [(7_500_000_000, 64)]
        case _:
            pairs = [(int(n * each), int(n)) for n, each in numbers.integers(2, 10**6, (4, 2))]
    return [(parameters, ranks, stage) for parameters, ranks in pairs for stage in range(4)]


BLOCK = (64 * 192, 192, 64 * 64, 64, 64 * 256, 256, 256 * 64, 64)
TRANSFORMER = (4096 * 64, *4 * BLOCK)


def split_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """How many numbers each tensor has, and ranks."""
    match sizes["what"]:
        case "one tensor":
            return [([7], 1), ([7], 3), ([8], 4)]
        case "more ranks than numbers":
            return [([1, 1], 4), ([2], 3)]
        case "an empty tensor":
            return [([3, 0, 4], 2)]
        case "any":
            return [
                ([int(n) for n in numbers.integers(1, 90, int(numbers.integers(2, 12)))], int(ranks))
                for ranks in numbers.integers(2, 9, 6)
            ]
    return [(list(TRANSFORMER), int(sizes["ranks"]))]


def small_transformer_case(ranks: int) -> Case:
    return Case(f"a small transformer on {ranks}", {"what": "a small transformer", "ranks": ranks})


# ---------------------------------------------------------------- on real ranks


def ranks_case(ranks: int, **sizes: int) -> Case:
    counted = {name: n for name, n in sizes.items() if name in ("parameters", "layers")}
    measured = {name: n for name, n in sizes.items() if name in ("batch", "width")}
    said = ", ".join(
        [f"{n} {name if n > 1 else name[:-1]}" for name, n in counted.items()]
        + [f"{name} {n}" for name, n in measured.items()]
    )
    if "step" in sizes:
        said += f", step {sizes['step']}"
    if sizes.get("times") == 0:
        said += ", all zero"
    if "zero" in sizes:
        said += f", rank {sizes['zero']}'s all zero"
    return Case(f"{ranks} rank{'s' * (ranks > 1)}, {said}", {"ranks": ranks, **sizes})


def _small(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Weights whose products stay of the size of their inputs."""
    return numbers.standard_normal(shape) / np.sqrt(shape[-2])


def _steep(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Gradients of which some ranks' are much longer than others'; zero for `times` 0, and on rank `zero`."""
    slope = np.linspace(0.1, 3, int(np.prod(shape))).reshape(shape)
    found = numbers.standard_normal(shape) * slope * int(sizes.get("times", 1))
    if "zero" in sizes:
        np.split(found, int(sizes["ranks"]))[int(sizes["zero"])][:] = 0
    return found


def zero2_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    """Gradients are whole numbers, whose sums are just exact in 16 bits: up to 2,048."""
    n = (int(sizes["parameters"]),)
    return (
        Array("gradient", n, "float16", fill="integers:-511:512"),
        Array("master", n, role="inout", placement="sharded"),
        Array("momentum", n, role="inout", placement="sharded"),
        Array("variance", n, role="inout", fill="uniform", placement="sharded"),
        Scalar("step", int(sizes["step"])),
        Array("weights", n, "float16", role="out", placement="replicated"),
    )


def gather_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    batch, width, layers = (int(sizes[k]) for k in ("batch", "width", "layers"))
    shapes = [(width, width)] * layers
    return (
        Array("x", (batch, width)),
        Array("slope", (batch, width)),
        *several("parts", shapes, fill=_small, placement="sharded"),
        Array("y", (batch, width), role="out"),
        *several("slopes", shapes, role="out", placement="sharded"),
    )


def clip_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = (int(sizes["parameters"]),)
    return (
        Array("gradient", n, fill=_steep, placement="sharded"),
        Scalar("limit", LIMIT, "float64"),
        Array("clipped", n, role="out", placement="sharded"),
    )


def ring(sizes: Sizes, size: float) -> float:
    """Bytes that each rank sends for a reduce-scatter or an all-gather of `size` bytes."""
    ranks = int(sizes["ranks"])
    return (ranks - 1) / ranks * size


def _half(sizes: Sizes) -> float:
    """Bytes of all parameters in 16 bits."""
    return 2.0 * int(sizes["parameters"])


def _model(sizes: Sizes) -> float:
    """Bytes of all layers in float32."""
    return 4.0 * int(sizes["layers"]) * int(sizes["width"]) ** 2


def gathered_layers(traffic: Traffic, sizes: Sizes) -> float:
    """How many layers all-gathers carried, by their bytes: one of nothing carried none."""
    others = int(sizes["ranks"]) - 1
    return int(sizes["layers"]) * traffic["bytes of all_gather"] / (others * _model(sizes)) if others else 0


# ---------------------------------------------------------------- offload, recomputation


def offload_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Layers, time of a fetch, time of a forward, places."""
    match sizes["what"]:
        case "one layer":
            return [(1, 2, 1, 1)]
        case "room for one":
            return [(4, 2, 3, 1)]
        case "room for all":
            return [(5, 2, 3, 9)]
        case "any":
            return [
                (int(layers), int(fetch), int(compute), int(room))
                for layers, fetch, compute, room in numbers.integers((2, 1, 1, 2), (12, 6, 6, 7), (8, 4))
            ]
    return [(12, 3, 2, 4)]


def recompute_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Layers, batch, sequence, width, heads, bytes for activations."""
    match sizes["what"]:
        case "room for all":
            return [(4, 1, 128, 64, 4, 10**9)]
        case "room for inputs":
            return [(6, 2, 256, 128, 8, 6 * 2 * 2 * 256 * 128)]
        case "one layer":
            return [(1, 1, 512, 256, 8, 34 * 512 * 256)]
        case "any":
            return [_some_model(numbers) for _ in range(8)]
    return [(96, 1, 2048, 12288, 96, 60 * 10**9), _long_sequence(numbers)]  # GPT-3's shape


def _long_sequence(numbers: Numbers) -> tuple[int, ...]:
    """16 times as long as wide: scores are most of a layer's work, to drop them first is not the least."""
    layers, batch = int(numbers.integers(3, 9)), int(numbers.integers(1, 4))
    sequence, width, heads = 4096, 256, 2
    unit = sequence * batch * width
    every = unit * (34 + 5 * heads * sequence // width)
    return layers, batch, sequence, width, heads, (layers - 1) * every + 3 * unit


def _some_model(numbers: Numbers) -> tuple[int, ...]:
    layers, batch, heads = (int(n) for n in numbers.integers((2, 1, 2), (40, 4, 17)))
    sequence, width = 256 * int(numbers.integers(1, 9)), 64 * heads
    unit = sequence * batch * width
    least, most = 2 * unit * layers, unit * (34 + 5 * heads * sequence / width) * layers
    return layers, batch, sequence, width, heads, int(numbers.uniform(least, 1.05 * most))


# ---------------------------------------------------------------- configurations

# The keys of DeepSpeed's schedulers (deepspeed/runtime/lr_schedules.py, August 2026).
SCHEDULERS: dict[str, tuple[str, ...]] = {
    "WarmupLR": ("warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type"),
    "WarmupDecayLR": (
        "total_num_steps",
        "warmup_min_lr",
        "warmup_max_lr",
        "warmup_num_steps",
        "warmup_type",
    ),
    "WarmupCosineLR": (
        "total_num_steps",
        "warmup_min_ratio",
        "warmup_num_steps",
        "cos_min_ratio",
        "warmup_type",
    ),
}
TRIPLE = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
# Common mistakes: scheduler keys of another type; buckets a thousandth of the default; offload in a stage
# that divides nothing of the kind.
COMMON: dict[str, Any] = {
    "train_batch_size": 512,
    "train_micro_batch_size_per_gpu": 32,
    "gradient_accumulation_steps": 4,
    "fp16": {"enabled": True},
    "scheduler": {
        "type": "WarmupCosineLR",
        "params": {"warmup_min_lr": 0, "warmup_max_lr": 3e-4, "warmup_num_steps": 500},
    },
    "zero_optimization": {
        "stage": 2,
        "reduce_bucket_size": 1_000_000,
        "allgather_bucket_size": 100_000,
        "offload_param": {"device": "cpu"},
    },
}


def config_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Settings, GPUs, and how many of them share a copy of the model: tensor times pipeline."""
    match sizes["what"]:
        case "a good one":
            good = {"train_batch_size": 64, "gradient_accumulation_steps": 2, "bf16": {"enabled": True}}
            return [({**good, "zero_optimization": {"stage": 1}}, 8, 1, 1)]
        case "two of three":
            triple = dict(zip(TRIPLE, (96, 4, 3), strict=True))
            return [({k: v for k, v in triple.items() if k != left}, 16, 2, 1) for left in TRIPLE]
        case "does not divide":
            return [({TRIPLE[0]: 100, TRIPLE[1]: 8}, 4, 1, 1), ({TRIPLE[0]: 6, TRIPLE[2]: 4}, 2, 1, 1)]
        case "common mistakes":
            return [(dict(COMMON), gpus, 1, 1) for gpus in (4, 8)]
        case "nothing offloaded":
            zero = {kind: {"device": "none"} for kind in ("offload_param", "offload_optimizer")}
            fp16 = {"fp16": {"enabled": False}, "bf16": {"enabled": True}}
            return [({TRIPLE[1]: 1, TRIPLE[2]: 8, **fp16, "zero_optimization": zero}, 2, 1, 1)]
        case "offload and stage":
            return [
                ({**_batches(numbers), "zero_optimization": {**stage, what: {"device": device}}}, 4, 1, 1)
                for what in ("offload_optimizer", "offload_param")
                for stage in ({}, *({"stage": number} for number in range(4)))
                for device in ("cpu", "nvme")
            ]
        case "pipeline and stage":
            return [
                ({**_batches(numbers), "zero_optimization": stage}, 8, 1, pipeline)
                for stage in ({}, *({"stage": number} for number in range(4)))
                for pipeline in (2, 1)
            ]
        case "every scheduler":
            keys = sorted({key for taken in SCHEDULERS.values() for key in taken})
            params = {key: int(numbers.integers(1, 100)) for key in keys}
            return [
                ({**_batches(numbers), "scheduler": {"type": kind, "params": params}}, 2, 1, 1)
                for kind in SCHEDULERS
            ]
        case "GPUs left over":
            whole = _batches(numbers)
            triple = {**whole, TRIPLE[0]: 2 * whole[TRIPLE[1]] * whole[TRIPLE[2]]}
            return [({k: v for k, v in triple.items() if k != left}, 10, 4, 1) for left in (*TRIPLE, "")]
    return [_some_settings(numbers) for _ in range(12)]


def _batches(numbers: Numbers) -> dict[str, Any]:
    """A micro-batch and accumulation steps: the batch is what they make."""
    return {key: int(numbers.integers(1, 9)) for key in TRIPLE[1:]}


def _some_settings(numbers: Numbers) -> tuple[dict[str, Any], int, int, int]:
    def pick(*values: Any) -> Any:
        return values[int(numbers.integers(len(values)))]

    tensor, pipeline, data = pick(1, 2, 4), pick(1, 2), pick(2, 3, 8)
    micro, steps = pick(1, 2, 8), pick(1, 4, 6)
    triple = dict(zip(TRIPLE, (micro * steps * data + pick(0, 0, 0, 1), micro, steps), strict=True))
    left_out = pick(*TRIPLE, "")
    settings: dict[str, Any] = {k: v for k, v in triple.items() if k != left_out}
    for kind in ("fp16", "bf16"):
        if pick(True, False):
            settings[kind] = {"enabled": pick(True, True, False)}
    zero: dict[str, Any] = {"stage": pick(0, 1, 2, 3)}
    if pick(True, False):
        zero["reduce_bucket_size"] = pick(500_000_000, 5_000_000, 4_999_999)
    if pick(True, False):
        zero["allgather_bucket_size"] = pick(200_000_000, 100_000)
    for what in ("offload_param", "offload_optimizer"):
        if pick(True, False):
            zero[what] = {"device": pick("cpu", "nvme", "none")}
    if pick(True, True, False):
        settings["zero_optimization"] = zero
    if pick(True, True, False):
        kind, other = pick(*SCHEDULERS), pick(*SCHEDULERS)
        keys = {*SCHEDULERS[kind][:2], *SCHEDULERS[other][1:3]}
        settings["scheduler"] = {"type": kind, "params": {key: 1 for key in sorted(keys)}}
    return settings, tensor * pipeline * data, tensor, pipeline


# ---------------------------------------------------------------- one run, three spellings

SIZE_FLAGS = ("--tensor-model-parallel-size", "--pipeline-model-parallel-size")
PER_NODE = 8  # GPUs


def command(values: Mapping[str, Any], equals: bool = False) -> list[str]:
    """Words of a command line. True stands for a flag without a value, False for none."""
    words: list[str] = []
    for flag, value in values.items():
        if value is True:
            words.append(flag)
        elif value is not False:
            words += [f"{flag}={value}"] if equals else [flag, str(value)]
    return words


def translate_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(command, gpus)."""
    kind, asked = str(sizes["what"]), []
    for _ in range(6):
        tensor, pipeline = (2 ** int(n) for n in numbers.integers((0, 1), (4, 4)))
        data, steps, micro = (int(n) for n in numbers.integers(2, 9, 3))
        gpus = PER_NODE * tensor * pipeline * data
        values: dict[str, Any] = dict(zip(SIZE_FLAGS, (tensor, pipeline), strict=True))
        values |= {"--micro-batch-size": micro, "--global-batch-size": PER_NODE * data * steps * micro}
        values |= {
            "--seq-length": 1024 * int(numbers.integers(1, 9)),
            "--zero-stage": int(numbers.integers(2)),
        }
        values |= {"--sequence-parallel": bool(numbers.integers(2)), "--lr": 3e-4, "--deepspeed": True}
        values |= {"--bf16": steps % 3 == 0, "--fp16": steps % 3 == 1}
        if kind == "sizes left out":
            gpus //= tensor * pipeline
            values = {flag: value for flag, value in values.items() if flag not in SIZE_FLAGS}
        if kind == "a batch that does not divide":
            values["--global-batch-size"] += 1
        if kind == "GPUs left over":  # whoever rounds the ranks down finds a batch that fits
            data = (4, 5, 7, 8)[steps % 4]
            gpus, values[SIZE_FLAGS[0]] = PER_NODE * tensor * pipeline * data, 3 * tensor
            values["--global-batch-size"] = PER_NODE * data // 3 * steps * micro
        if kind == "stages and pipelines":
            values["--zero-stage"] = int(numbers.integers(4))
            values[SIZE_FLAGS[1]] = (1, pipeline)[steps % 2]
            values["--global-batch-size"] *= pipeline
        asked.append((command(values, equals=kind == "with equals signs"), gpus))
    return asked


TRANSLATED = (
    "a good one",
    "with equals signs",
    "sizes left out",
    "a batch that does not divide",
    "GPUs left over",
    "stages and pipelines",
)


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="shard.memory",
        lab=LAB,
        evidence=AnsweredCases(questions=memory_questions),
        correct_points=2,
        cases=named_cases("one rank", "7.5 billion on 64", "any"),
        hints=(
            "A rank keeps three things for each parameter: 2 bytes of the weight, 2 bytes of the gradient, "
            "and 12 bytes of optimizer states in FP32.",
            "Stage 1 divides the 12 bytes by the ranks. Stage 2 divides the gradient's 2 bytes as well, and "
            "stage 3 divides everything. What is not divided counts in full.",
            "Compute the three terms one by one, each for `parameters` or for `parameters // ranks`, and add "
            "them. The ranks divide `parameters`, so `//` is exact.",
        ),
        section="2 · Three stages",
    ),
    Exercise(
        name="shard.split",
        lab=LAB,
        evidence=AnsweredCases(questions=split_questions, measured=True),
        correct_points=1,
        cases=(
            *named_cases("one tensor", "more ranks than numbers", "an empty tensor", "any"),
            small_transformer_case(4),
        ),
        budgets=(
            Budget(
                "longest share",
                lambda sizes: -(-sum(TRANSFORMER) // int(sizes["ranks"])),
                1,
                "longest share",
                naive=max(TRANSFORMER),
                unit="elements",
                why="total / ranks, rounded up",
                advice="Which single tensor is longer than the budget? A share may end inside a tensor.",
            ),
            Budget(
                "pieces",
                lambda sizes: len(TRANSFORMER) + int(sizes["ranks"]) - 1,
                1,
                "pieces",
                naive=lambda sizes: len(TRANSFORMER) * int(sizes["ranks"]),
                unit="pieces",
                why="each of the cuts makes one more",
                advice="Lay all tensors end to end and cut this array once between two ranks. How many cuts "
                "are that, and how many do you make?",
            ),
        ),
        hints=(
            "Think of one long array of all elements. Let share be ⌈total / ranks⌉. Then rank r has the "
            "elements from r · share up to, but not including, (r + 1) · share.",
            "Let `first` be the place where a tensor begins in the long array. The tensor and a share "
            "overlap from the larger of their starts to the smaller of their ends.",
            "Subtract `first` from both ends of the overlap, because a piece counts within its tensor. Leave "
            "out a piece whose start is not below its stop.",
        ),
        section="3 · Cut evenly",
    ),
    Exercise(
        name="shard.zero2_step",
        lab=LAB,
        evidence=Communication(
            arguments=zero2_arguments,
            calls=frozenset({"all_reduce", "reduce_scatter", "all_gather", "broadcast"}),
        ),
        correct_points=2,
        cases=(
            ranks_case(1, parameters=5, step=1),
            ranks_case(3, parameters=12, step=2),
            ranks_case(2, parameters=64, step=1),
            ranks_case(4, parameters=1024, step=3),
        ),
        budgets=(
            Budget(
                "busiest sender",
                lambda sizes: 2 * ring(sizes, _half(sizes)),
                3,
                "busiest sender",
                unit="B",
                why="what DDP's all-reduce of FP16 takes",
                advice="Which part of the mean gradient does this rank use, and does it receive more than "
                "that? In which format does it send its new weights?",
                case=EVERY,
            ),
        ),
        rtol=2e-3,
        atol=1e-3,
        hints=(
            "The step has three parts: get this rank's share of the summed gradient, run Adam on it, and "
            "gather the new 16-bit weights of all ranks. If the check finds the old values in `master`, it "
            "was not changed in place.",
            "Make a `share` as long as `master`, in FP16, and call `dist.reduce_scatter(share, "
            "list(gradient.chunk(ranks)))`. This gives a sum, so the mean is `share.float() / ranks`.",
            "Change `master`, `momentum` and `variance` with methods that end in an underscore (`mul_`, "
            "`add_`, `addcmul_`). Then gather `master.half()` rather than `master`.",
        ),
        section="4 · ZeRO-2: the optimizer in between",
    ),
    Exercise(
        name="shard.gather_layers",
        lab=LAB,
        evidence=Communication(
            arguments=gather_arguments,
            calls=frozenset({"all_reduce", "reduce_scatter", "all_gather"}),
            counts={"layers": gathered_layers},
        ),
        correct_points=2,
        cases=(
            ranks_case(1, layers=2, batch=3, width=4),
            ranks_case(3, layers=1, batch=2, width=6),
            ranks_case(2, layers=3, batch=4, width=8),
            ranks_case(4, layers=4, batch=8, width=32),
        ),
        budgets=(
            Budget(
                "busiest sender",
                lambda sizes: 3 * ring(sizes, _model(sizes)),
                2,
                "busiest sender",
                unit="B",
                why="1.5 × DDP",
                advice="A rank needs all weights of a layer, but how much of the layer's gradient does it "
                "keep?",
                case=EVERY,
            ),
            Budget(
                "layers",
                lambda sizes: (2 * int(sizes["layers"]) - 1) * (int(sizes["ranks"]) > 1),
                1,
                "gathered again",
                naive=lambda sizes: int(sizes["layers"]),
                sense=">=",
                unit="layers",
                why="each in forward and in backward; the last may stay",
                advice="Layers that are not gathered again in backward must have stayed whole. Which layers "
                "are whole on this rank between forward and backward?",
                case=EVERY,
            ),
        ),
        rtol=5e-6,
        atol=5e-6,
        hints=(
            "Write a helper that gathers one layer. It makes an empty (width, width) tensor and calls "
            "`dist.all_gather` with the tensor's `chunk`s.",
            "Forward keeps the input of each layer and the last output, but no weights. With h = tanh(input "
            "@ w), the gradient before tanh is inner = slope · (1 − h²).",
            "Go backward from the last layer to the first. Gather the layer. `input.T @ inner` is this "
            "rank's gradient of w: reduce-scatter it and divide by the ranks. `inner @ w.T` is the slope "
            "for the layer before.",
        ),
        section="5 · ZeRO-3: a layer when it is needed",
    ),
    Exercise(
        name="shard.clip",
        lab=LAB,
        evidence=Communication(arguments=clip_arguments, calls=frozenset({"all_reduce", "all_gather"})),
        correct_points=2,
        cases=(
            ranks_case(1, parameters=9),
            ranks_case(3, parameters=10),
            ranks_case(2, parameters=8, times=0),
            ranks_case(3, parameters=12, zero=1),
            ranks_case(4, parameters=1000),
        ),
        budgets=(
            Budget(
                "busiest sender",
                24,
                1,
                "busiest sender",
                unit="B",
                why="one or two numbers from each rank",
                advice="What does the norm need to know about another rank's shard? Is it all elements?",
                case=EVERY,
            ),
        ),
        rtol=1e-4,
        atol=1e-5,
        hints=(
            "Print the factor by which each rank multiplies its shard. What is the factor on one rank?",
            "All ranks need the norm of the whole gradient. Its square is the sum of the shards' squared "
            "norms.",
            "All-reduce the sum of squares on every rank, take the root, and multiply by min(1, limit / "
            "norm). A norm of 0 must not give NaN.",
        ),
        section="Detective · A loss that depends on the ranks",
    ),
    Exercise(
        name="shard.offload",
        lab=LAB,
        evidence=AnsweredCases(questions=offload_questions, measured=True),
        correct_points=1,
        cases=named_cases("one layer", "room for one", "room for all", "any", "12 layers, room for 4"),
        budgets=(
            Budget(
                "over the best",
                0,
                2,
                "time",
                naive=67,
                unit="%",
                why="over the best plan",
                advice="Draw your plan with `draw`. Which fetch begins later than the link and the room "
                "allow?",
                case=EVERY,
            ),
            Budget(
                "fetches",
                20,
                2,
                "fetches",
                naive=24,
                unit="layers",
                why="each layer once, and 8 again that found no room",
                advice="Which layers are on the device when backward begins, and which would backward use "
                "first?",
                case=EVERY,
            ),
        ),
        hints=(
            "List the layers in the order of their uses: 0 … L − 1, then L − 1 … 0. Before each use, fetch "
            "as many of the next layers as there is room for.",
            "When there is no room, evict a layer whose next use comes later than that of the layer you want "
            "to fetch. In forward this is the layer with the smallest number.",
            "If every layer on the device is needed before the one you want to fetch, stop fetching, and run "
            "the next forward or backward first.",
        ),
        section="7 · More room: host memory and disk",
    ),
    Exercise(
        name="shard.recompute",
        lab=LAB,
        evidence=AnsweredCases(questions=recompute_questions, measured=True),
        correct_points=1,
        cases=named_cases(
            "room for all", "room for inputs", "one layer", "any", "GPT-3 in 60 GB, a long sequence"
        ),
        budgets=(
            Budget(
                "over the least",
                0,
                3,
                "recomputed",
                naive=68.9,
                unit="% of a forward",
                why="over the least that fits",
                advice="How many FLOPs does each saved byte cost if you drop scores, and how many if you "
                "keep only the input? The order depends on the shape, and memory that is left over may "
                "serve another choice.",
            ),
        ),
        hints=(
            "Compute the bytes and the FLOPs of one layer for each of the three choices.",
            "All layers are alike, so only the three counts matter. Two nested loops go through all ways to "
            "split the layers.",
            "Among the splits whose bytes are at most `memory`, return the one with the fewest FLOPs.",
        ),
        section="8 · Activations",
    ),
    Exercise(
        name="shard.config",
        lab=LAB,
        evidence=AnsweredCases(questions=config_questions),
        correct_points=3,
        cases=named_cases(
            "a good one",
            "two of three",
            "does not divide",
            "GPUs left over",
            "common mistakes",
            "nothing offloaded",
            "offload and stage",
            "pipeline and stage",
            "every scheduler",
            "any",
        ),
        hints=(
            "There are gpus / (tensor · pipeline) data-parallel ranks, and the identity cannot hold unless "
            "this is a whole number. Compute the missing batch number from the other two with `//`. Then "
            "multiply again, to see whether it was exact.",
            "`settings.get('zero_optimization', {})` returns an empty dictionary if the part is missing. "
            "The stage is 0 in this case.",
            "If the `device` of an offload is 'none', nothing is offloaded. `enabled` may be False. A "
            "missing `stage` and a `stage` of 0 mean the same.",
        ),
        section="9 · Configurations",
    ),
    Exercise(
        name="shard.translate",
        lab=LAB,
        evidence=AnsweredCases(questions=translate_questions),
        correct_points=3,
        cases=named_cases(*TRANSLATED),
        hints=(
            "First turn the words into a dictionary. A word that begins with `--` is a flag. Its value is "
            "behind an equals sign, or the next word, unless that begins with `--`, too.",
            "The data-parallel ranks are gpus // (tensor · pipeline), and the steps are global // (micro · "
            "ranks). Multiply again to see whether both were exact.",
            "`NeMo` gets the sizes as they are, and `sequence_parallel` as True or False. DeepSpeed gets the "
            "batch triple, the stage, and the format that has a flag.",
        ),
        section="Megatron and DeepSpeed together",
    ),
)


_prediction = partial(prediction, "shard", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "gpt3",
        "Weights, gradients and optimizer states of GPT-3, 175 billion parameters, trained in 16 bits",
        "GB",
        2800,
        "Each parameter takes 2 + 2 + 4 + 4 + 4 = 16 bytes, and 16 · 175 billion bytes are 2,800 GB.",
        0.01,
    ),
    _prediction(
        "seventh",
        "Factor by which ZeRO-2 needs less memory per rank than DDP, on 64 ranks",
        "×",
        7.2,
        "DDP keeps 16 bytes per parameter and ZeRO-2 keeps 2 + 14/64 = 2.22, so the factor is 16 / 2.22. It "
        "would take infinitely many ranks to reach 8.",
        0.02,
    ),
    _prediction(
        "traffic",
        "Bytes per parameter that each of 4 ranks sends in a ZeRO-2 step, in 16 bits",
        "B",
        3,
        "The reduce-scatter takes 3/4 · 2 bytes, and the all-gather takes 3/4 · 2 bytes again. DDP's "
        "all-reduce takes just as much.",
    ),
    _prediction(
        "again",
        "Bytes per parameter that each of 4 ranks sends in a ZeRO-3 step, in 16 bits",
        "B",
        4.5,
        "There are three collectives of 3/4 · 2 bytes each: an all-gather in forward, an all-gather in "
        "backward and a reduce-scatter. That is 1.5 times DDP's traffic.",
    ),
    _prediction(
        "fsdp",
        "Bytes per parameter alive on each of 4 ranks after backward with fully_shard, in FP32",
        "B",
        None,
        "Weight, gradient and two moments in FP32 are 16 bytes, which four ranks share.",
        0.05,
    ),
    _prediction(
        "fetches",
        "Least number of fetches for forward and backward of 12 layers, with room for 4",
        "fetches",
        20,
        "Forward fetches all 12 layers once. When backward begins, the last 4 are still on the device, so "
        "only the other 8 are fetched again.",
    ),
    _prediction(
        "activations",
        "Activations of one sequence of 2,048 tokens in GPT-3, in 16 bits, without recomputation",
        "GB",
        None,
        "The second term is 5 · 96 · 2,048 / 12,288 = 80. So 96 layers take 96 · 2,048 · 12,288 · (34 + 80) "
        "bytes.",
        0.05,
    ),
    _prediction(
        "accumulate",
        "Accumulation steps for batch 1,536 and micro-batch 1 on 1,024 GPUs with tensor 8 and pipeline 8",
        "steps",
        96,
        "There are 1,024 / (8 · 8) = 16 data-parallel ranks. Each handles 1,536 / 16 = 96 samples, one per "
        "micro-batch.",
    ),
    _prediction(
        "seventy",
        "GPUs of 80 GB for the 16 bytes per parameter of 70 billion parameters, all of them trained",
        "GPUs",
        14,
        "16 · 70 billion bytes are 1,120 GB, and 1,120 / 80 = 14. This leaves no room for activations.",
    ),
    _prediction(
        "typo",
        "Ranks that share a layer if YAML sets tensor_model_paralel_size to 8, and 1 is the default",
        "ranks",
        None,
        "The misspelt key is one that nobody reads. The right key is missing, so the default of 1 applies.",
    ),
)
