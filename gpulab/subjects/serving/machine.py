"""What requests are served on: slots, blocks of the key-value cache, and how long a step takes.

The times are modelled: those of the roofline (`gpulab.hardware.roofline`), which no real program reaches.
A step reads all weights once, whoever is in it, and the cached keys and values of each request that it
works on; it computes two operations per parameter and token, and attention on top. It lasts as long as the
slower of the two takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import inf
from typing import Any

from gpulab.simulator import hardware
from gpulab.subjects.models import known
from gpulab.subjects.models.config import Config


@dataclass(frozen=True)
class Work:
    """What one step does, in tokens.

    `new` are the tokens that go through the model, of prompts and of outputs; `pairs` the sum over them of
    the tokens that each looks at; `read` the cached tokens whose keys and values are read; `moved` those
    that go to or come from the host.
    """

    new: int = 0
    pairs: int = 0
    read: int = 0
    moved: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.new + other.new, self.pairs + other.pairs, self.read + other.read, self.moved + other.moved
        )


@dataclass(frozen=True)
class Times:
    """Seconds of a step by the roofline, and of what is moved by the link to the host.

    `per_token` and `per_pair` are FLOPs, `weights` and `token_bytes` (keys and values of one token) bytes,
    `peak` FLOP/s, `bandwidth` and `link` B/s, `overhead` seconds that every step takes for itself.
    """

    per_token: float
    per_pair: float
    weights: float
    token_bytes: float
    peak: float
    bandwidth: float
    link: float = inf
    overhead: float = 0.0

    def seconds(self, work: Work) -> float:
        """How long a step with this work lasts; moving to and from the host is not hidden."""
        step = max(self.compute(work), self.memory(work)) if work.new else 0.0
        return self.overhead + step + work.moved * self.token_bytes / self.link

    def compute(self, work: Work) -> float:
        """Seconds that the arithmetic takes at peak."""
        return (work.new * self.per_token + work.pairs * self.per_pair) / self.peak

    def memory(self, work: Work) -> float:
        """Seconds that weights, keys and values take over the DRAM's bus."""
        return (self.weights + (work.read + work.new) * self.token_bytes) / self.bandwidth


@dataclass(frozen=True)
class Units:
    """Every step lasts the same, whatever is in it: for counting steps."""

    unit: float = 1.0

    def seconds(self, work: Work) -> float:
        """The unit."""
        return self.unit


def times(
    model: str,
    gpu: str = "H100",
    *,
    gpus: int = 1,
    bits: int = 16,
    cache_bits: int = 16,
    overhead: float = 0.0,
) -> Times:
    """The times of a published `model` (see `gpulab.models.known`) on `gpus` GPUs called `gpu` that share it
    evenly.

    `bits` is the size of a weight and `cache_bits` that of a number in the KV cache; the arithmetic is
    bfloat16. `overhead` is added to each step, in seconds. Communication between the GPUs is left out. The
    link to the host is that of each GPU, or unlimited where the GPU shares the host's memory. Raises
    LookupError for an unknown model, UnknownGPU.

    >>> times("Llama 3 8B", "H100").bandwidth
    3350000000000.0
    """
    config = known.find(model).config
    roof = hardware.roofline(gpu, "bfloat16")
    host_link = hardware.find(gpu).host_link
    matrices = matrix_parameters(config)
    return Times(
        per_token=2 * matrices,
        # Scores and weighted values: two operations per number of a head, each, for every query head.
        per_pair=4 * config.layers * config.width,
        weights=matrices * bits / 8,
        token_bytes=2 * config.layers * config.kv_heads * config.head_width * cache_bits / 8,
        peak=gpus * roof.peak,
        bandwidth=gpus * roof.bandwidth,
        link=gpus * float(hardware.link(host_link).per_direction) if host_link else inf,
        overhead=overhead,
    )


def matrix_parameters(config: Config) -> int:
    """The parameters that a token is multiplied by: all matrices of the layers, and the output layer.

    Of a mixture of experts all would be counted once: `times` takes it for dense.
    """
    shared = config.kv_heads * config.head_width
    attention = 2 * config.width * (config.width + shared)
    feed = (3 if config.gated else 2) * config.width * config.hidden
    return config.layers * (attention + feed) + config.vocabulary * config.width


@dataclass(frozen=True)
class Machine:
    """What a policy has to share out.

    At most `slots` requests run at a time. The cache has `blocks` of `block_tokens` tokens each. A step
    processes at most `step_tokens` tokens of prompts and outputs together (None: any number). With `reserve`
    a request holds from the start all blocks that it might need; without, those that it has tokens for. There
    is room for `host` swapped blocks on the host (0: there is no swapping).
    """

    slots: int
    blocks: int
    block_tokens: int = 16
    step_tokens: int | None = None
    reserve: bool = False
    host: int = 0
    times: Times | Units = Units()

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold so many tokens."""
        return -(-tokens // self.block_tokens)

    def to_data(self) -> dict[str, Any]:
        """As JSON's types; `from_data` is the way back."""
        return asdict(self)

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Machine:
        """The machine that `to_data` made data of. Raises KeyError and TypeError for what is none."""
        told = dict(data["times"])
        timed: Times | Units = Units(**told) if "unit" in told else Times(**told)
        wanted = {field.name for field in fields(Machine)} - {"times"}
        return Machine(**{name: data[name] for name in wanted if name in data}, times=timed)


def fitting(
    model: str, gpu: str = "H100", *, gpus: int = 1, slots: int = 256, memory: float = 0.9, **more: Any
) -> Machine:
    """A machine for `model` on `gpus` GPUs called `gpu`, with as many blocks as its weights leave room for.

    Weights and blocks together fill the share `memory` of the GPUs' DRAM; `slots` requests may run at once.
    `more` are further fields of Machine. Raises ValueError where the weights alone do not fit.

    >>> fitting("Llama 3 8B", "H100").blocks
    27175
    """
    timed = times(model, gpu, gpus=gpus)
    free = memory * gpus * float(hardware.find(gpu).dram_bytes) - timed.weights
    block_tokens = int(more.pop("block_tokens", 16))
    blocks = int(free // (timed.token_bytes * block_tokens))
    if blocks < 1:
        raise ValueError(f"{model} leaves no room for a cache on {gpus} × {gpu}")
    return Machine(slots=slots, blocks=blocks, block_tokens=block_tokens, times=timed, **more)
