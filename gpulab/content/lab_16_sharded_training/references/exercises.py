"""Expected results of lab 16's exercises: plans are carried out and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes, WrongAnswer, grouped
from gpulab.content.lab_16_sharded_training.exercises import LIMIT, PER_NODE, SCHEDULERS, TRIPLE
from gpulab.subjects.distributed.offload import CannotRun, carry_out

Arrays = Mapping[str, np.ndarray]

# ---------------------------------------------------------------- memory, pieces

STATES = 12  # bytes a parameter that Adam keeps in float32


@usual_slips(
    (
        lambda parameters, ranks, stage: (4 + 8) * parameters // (ranks if stage else 1),
        "The optimizer states are 12 bytes: besides the two moments, they include the master weight.",
    ),
    (
        lambda parameters, ranks, stage: (
            8 * (parameters // (ranks if stage else 1))
            + 2 * (parameters // (ranks if stage > 1 else 1))
            + 2 * (parameters // (ranks if stage > 2 else 1))
        ),
        "The optimizer states are 12 bytes: besides the two moments, they include the master weight.",
    ),
    (
        lambda parameters, ranks, stage: 16 * parameters // (ranks if stage else 1),
        "This divides all 16 bytes. Stages 1 and 2 leave some of them whole.",
    ),
    (
        lambda parameters, ranks, stage: 4 * parameters // ranks + 12 * parameters,
        "This divides the weights and the gradients. Stage 1 divides the optimizer states instead.",
    ),
    (
        lambda parameters, ranks, stage: 14 * (parameters // ranks) + 2 * parameters,
        "These are the bytes of stage 2.",
    ),
)
def memory(parameters: int, ranks: int, stage: int) -> int:
    """Bytes that a rank keeps."""
    share = parameters // ranks
    return (
        2 * (share if stage >= 3 else parameters)
        + 2 * (share if stage >= 2 else parameters)
        + STATES * (share if stage >= 1 else parameters)
    )


def split(answer: Any, sizes: Sequence[int], ranks: int) -> dict[str, float]:
    """The longest share and how many pieces there are; each number is in one of them."""
    if not isinstance(answer, list) or not all(isinstance(share, list) for share in answer):
        raise WrongAnswer("the answer must be a list that holds one list of pieces for each rank.")
    if len(answer) != ranks:
        raise WrongAnswer(
            f"it has {len(answer)} lists for {ranks} ranks. A rank without pieces gets an empty list."
        )
    found: dict[int, list[tuple[int, int]]] = {tensor: [] for tensor in range(len(sizes))}
    for rank, share in enumerate(answer):
        for piece in share:
            tensor, start, stop = _piece(piece, rank, sizes)
            found[tensor].append((start, stop))
    for tensor, pieces in found.items():
        at = 0
        for start, stop in sorted(pieces):
            if start < at:
                raise WrongAnswer(
                    f"element {start} of tensor {tensor} is in two pieces. A piece ends before its `stop`."
                )
            if start > at:
                break
            at = stop
        if at < sizes[tensor]:
            raise WrongAnswer(
                f"no rank has element {at} of tensor {tensor}. A share has ⌈{sum(sizes)} / {ranks}⌉ "
                "elements, rounded up."
            )
    lengths = [sum(stop - start for _, start, stop in share) for share in answer]
    return {"longest share": float(max(lengths)), "pieces": float(sum(map(len, answer)))}


def _piece(piece: Any, rank: int, sizes: Sequence[int]) -> tuple[int, int, int]:
    whole = isinstance(piece, list) and len(piece) == 3
    if not whole or not all(isinstance(n, int) and not isinstance(n, bool) for n in piece):
        raise WrongAnswer(
            f"rank {rank} has the piece {piece!r}, but a piece is a list of three whole numbers, "
            "[tensor, start, stop]."
        )
    tensor, start, stop = piece
    there = 0 <= tensor < len(sizes)
    if not there or not 0 <= start < stop <= sizes[tensor]:
        if not there:
            raise WrongAnswer(f"rank {rank} has the piece {piece!r}, but there is no tensor {tensor}.")
        raise WrongAnswer(
            f"rank {rank} has the piece {piece!r}. In tensor {tensor}, a piece needs "
            f"0 ≤ start < stop ≤ {sizes[tensor]}; leave empty pieces out."
        )
    return tensor, start, stop


# ---------------------------------------------------------------- on real ranks: arrays of a rank in front


@usual_slips(
    (
        lambda inputs, sizes: {name: inputs[name] for name in ("master", "momentum", "variance")},
        "This is the value that the tensor had before. Write the new one into it, as in `master.copy_(…)`.",
    ),
)
def zero2_step(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    """Adam on the mean gradient, all parameters together."""
    gradient, step = inputs["gradient"].mean(axis=0), int(sizes["step"])
    momentum = 0.9 * inputs["momentum"] + 0.1 * gradient
    variance = 0.999 * inputs["variance"] + 0.001 * gradient**2
    root = np.sqrt(variance / (1 - 0.999**step)) + 1e-8
    master = inputs["master"] - 0.01 * momentum / (1 - 0.9**step) / root
    return {"weights": master, "master": master, "momentum": momentum, "variance": variance}


def _summed(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    found, ranks = gather_layers(inputs, sizes), len(inputs["x"])
    return {name: array * (ranks if name.startswith("slopes") else 1) for name, array in found.items()}


@usual_slips(
    (
        _summed,
        "The same happens if the gradients of the ranks are added and not averaged. Divide by the "
        "number of ranks.",
    ),
)
def gather_layers(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    """Each rank's batch through the whole layers, and the mean of the ranks' gradients."""
    given: Any = grouped(inputs)
    states = [given["x"]]
    for weights in given["parts"]:
        states.append(np.tanh(states[-1] @ weights))
    slope, slopes = given["slope"], {}
    for number in reversed(range(len(given["parts"]))):
        inner = slope * (1 - states[number + 1] ** 2)
        slopes[f"slopes[{number}]"] = np.einsum("rbi,rbo->io", states[number], inner) / len(inner)
        slope = inner @ given["parts"][number].T
    return {"y": states[-1], **slopes}


def clip(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    """The gradient, shortened to a norm of LIMIT where it is longer."""
    norm = float(np.linalg.norm(inputs["gradient"]))
    return {"clipped": inputs["gradient"] * (min(1.0, LIMIT / norm) if norm else 1.0)}


# ---------------------------------------------------------------- offload


def best_plan(layers: int, room: int) -> list[str]:
    """Ask for layers in the order of their uses as early as there is room; evict what is used last."""
    uses = [*range(layers), *reversed(range(layers))]
    plan: list[str] = []
    here: list[int] = []
    coming = 0
    for number, layer in enumerate(uses):
        next_use = {at: place for place, at in reversed([*enumerate(uses)][number:])}
        coming = max(coming, number)
        while coming < len(uses):
            if uses[coming] not in here:
                if len(here) == room:
                    last = max(here, key=lambda at: next_use.get(at, len(uses)))
                    if next_use.get(last, len(uses)) <= coming:
                        break
                    here.remove(last)
                    plan.append(f"evict {last}")
                here.append(uses[coming])
                plan.append(f"fetch {uses[coming]}")
            coming += 1
        plan.append(f"{'forward' if number < layers else 'backward'} {layer}")
    return plan


def offload(answer: Any, layers: int, fetch: int, compute: int, room: int) -> dict[str, float]:
    """By how many percent the plan takes longer than the best one, and its fetches."""
    if not isinstance(answer, list):
        raise WrongAnswer("a plan must be a list of events, such as 'fetch 0'.")
    if len(answer) > 100 * layers:
        raise WrongAnswer(
            f"the plan has {len(answer):,} events, but 6 for each of the {layers} layers are always enough."
        )
    try:
        run = carry_out(answer, layers, fetch, compute, room)
    except CannotRun as stuck:
        raise WrongAnswer(f"{stuck}.") from None
    best = carry_out(best_plan(layers, room), layers, fetch, compute, room)
    return {"over the best": 100 * (run.time / best.time - 1), "fetches": float(run.fetches)}


# ---------------------------------------------------------------- recomputation


def choices(batch: int, sequence: int, width: int, heads: int) -> tuple[tuple[float, float], ...]:
    """Bytes kept and FLOPs done again of a layer that keeps all, all but scores, its input."""
    unit = sequence * batch * width
    scores = 4 * batch * sequence**2 * width
    return (
        (unit * (34 + 5 * heads * sequence / width), 0),
        (34 * unit, scores),
        (2 * unit, 24 * unit * width + scores),
    )


def recompute(
    answer: Any, layers: int, batch: int, sequence: int, width: int, heads: int, memory: int
) -> dict[str, float]:
    """FLOPs done again over the least that fits into memory, in percent of a forward pass."""
    whole = isinstance(answer, list) and len(answer) == 3
    if not whole or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in answer):
        raise WrongAnswer(
            "the answer must be a list of three whole numbers: how many layers keep all, all but scores, and "
            "only their input."
        )
    if sum(answer) != layers:
        raise WrongAnswer(f"the three numbers add up to {sum(answer)}, but there are {layers} layers.")
    kinds = choices(batch, sequence, width, heads)

    def total(counts: Sequence[int], which: int) -> float:
        return sum(count * kind[which] for count, kind in zip(counts, kinds, strict=True))

    if total(answer, 0) > memory:
        raise WrongAnswer(
            f"these layers keep {total(answer, 0) / 1e9:.4g} GB, but there is room for {memory / 1e9:.4g} "
            "GB. Check the bytes of each choice in the table."
        )
    least = min(
        total(counts, 1)
        for every in range(layers + 1)
        for some in range(layers + 1 - every)
        if total(counts := (every, some, layers - every - some), 0) <= memory
    )
    return {"over the least": 100 * (total(answer, 1) - least) / (layers * kinds[2][1])}


# ---------------------------------------------------------------- configurations


def config(settings: Mapping[str, Any], gpus: int, tensor: int, pipeline: int) -> dict[str, Any]:
    """The batch triple, completed, or None; and the problems, sorted."""
    data = gpus // (tensor * pipeline)
    problems = []
    train, micro, steps = (settings.get(key, 0) for key in TRIPLE)
    if not train:
        train = micro * steps * data
    elif not micro:
        micro = train // (steps * data)
    elif not steps:
        steps = train // (micro * data)
    fits = train == micro * steps * data and gpus % (tensor * pipeline) == 0
    if not fits:
        problems.append("batch")
    if all(settings.get(kind, {}).get("enabled") for kind in ("fp16", "bf16")):
        problems.append("fp16 and bf16")
    zero = settings.get("zero_optimization", {})
    for what, least in (("offload_param", 3), ("offload_optimizer", 1)):
        if zero.get(what, {}).get("device", "none") != "none" and zero.get("stage", 0) < least:
            problems.append(what)
    if pipeline > 1 and zero.get("stage", 0) >= 2:
        problems.append("pipeline")
    problems += [k for k in ("reduce_bucket_size", "allgather_bucket_size") if zero.get(k, 5e8) < 5e6]
    if scheduler := settings.get("scheduler"):
        problems += [key for key in scheduler["params"] if key not in SCHEDULERS[scheduler["type"]]]
    return {"batch": [train, micro, steps] if fits else None, "problems": sorted(problems)}


def translate(command: Sequence[str], gpus: int) -> dict[str, Any] | None:
    """DeepSpeed's file and NeMo's arguments for a command of Megatron-DeepSpeed; None if it cannot run."""
    words = [part for word in command for part in word.split("=", 1)]
    flags = {
        word: None if following.startswith("--") else following
        for word, following in zip(words, [*words[1:], "--"], strict=True)
        if word.startswith("--")
    }

    def number(flag: str, default: int | None = None) -> int:
        value = flags.get(flag, default)
        assert value is not None, flag
        return int(value)

    tensor, pipeline = (number(f"--{kind}-model-parallel-size", 1) for kind in ("tensor", "pipeline"))
    micro, whole, stage = (
        number(f"--{what}") for what in ("micro-batch-size", "global-batch-size", "zero-stage")
    )
    data = gpus // (tensor * pipeline)
    if gpus % (tensor * pipeline) or whole % (micro * data) or (pipeline > 1 and stage > 1):
        return None
    formats = {kind: {"enabled": True} for kind in ("bf16", "fp16") if f"--{kind}" in flags}
    return {
        "deepspeed": {
            "train_batch_size": whole,
            "train_micro_batch_size_per_gpu": micro,
            "gradient_accumulation_steps": whole // (micro * data),
            "zero_optimization": {"stage": stage},
            **formats,
        },
        "strategy": {
            "tensor_model_parallel_size": tensor,
            "pipeline_model_parallel_size": pipeline,
            "sequence_parallel": "--sequence-parallel" in flags,
        },
        "trainer": {"devices": PER_NODE, "num_nodes": gpus // PER_NODE},
        "data": {
            "seq_length": number("--seq-length"),
            "micro_batch_size": micro,
            "global_batch_size": whole,
        },
    }


REFERENCES: dict[str, Callable[..., Any]] = {
    "shard.memory": memory,
    "shard.split": split,
    "shard.zero2_step": zero2_step,
    "shard.gather_layers": gather_layers,
    "shard.clip": clip,
    "shard.offload": offload,
    "shard.recompute": recompute,
    "shard.config": config,
    "shard.translate": translate,
}
