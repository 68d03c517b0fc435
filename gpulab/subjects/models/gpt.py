"""A decoder-only transformer in PyTorch, small enough to read and to train on a CPU.

With `Config`'s defaults it has the form of GPT-2 (A. Radford et al., "Language Models are Unsupervised
Multitask Learners", 2019); with rotary positions, RMS norm, gated feed-forward, no biases and untied
weights that of Llama (H. Touvron et al., "LLaMA", arXiv:2302.13971). Under ``with torch.device("meta")`` a
model of any size takes no memory, and its parameters can be counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .config import Config

Attend = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
IGNORE = -100  # the label that `cross_entropy` leaves out by default


class Cache:
    """Keys and values of the tokens so far, one pair for each layer, (rows, heads, tokens, head width)."""

    def __init__(self) -> None:
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def length(self) -> int:
        """How many tokens are cached."""
        return self.layers[0][0].shape[2] if self.layers else 0

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append new tokens to a layer; returns all of its keys and values."""
        if layer in self.layers:
            old_keys, old_values = self.layers[layer]
            keys, values = torch.cat((old_keys, keys), 2), torch.cat((old_values, values), 2)
        self.layers[layer] = keys, values
        return keys, values


class GPT(nn.Module):
    """tokens (rows, length), integers → logits (rows, length, vocabulary).

    ``logits[:, i]`` are the scores of token i + 1; they depend on the tokens 0 … i only. `attend` replaces
    the attention of every layer: a function (queries, keys, values, allowed) → outputs. Queries and outputs
    are (rows, heads, new tokens, head width), keys and values (rows, heads, all tokens, head width), and
    `allowed` is boolean, (rows or 1, 1, new tokens, all tokens), True where a token may look.
    """

    def __init__(self, config: Config, attend: Attend | None = None) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.context, config.width) if config.positions == "learned" else None
        self.blocks = nn.ModuleList(
            Block(config, layer, attend or scaled_dot_product) for layer in range(config.layers)
        )
        self.norm = _norm(config)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        if config.tied:
            self.head.weight = self.embed.weight
        self._initialise()

    def _initialise(self) -> None:
        """As GPT-2: normal, 0.02, biases 0; what ends in the residual stream smaller by √(2 · layers)."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                ends = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * self.config.layers) if ends else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens: Tensor, present: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """`present` (rows, length), boolean: False marks padding, on either side; None means all present.

        With a `cache`, `tokens` are those that come after the cached ones, and `present` covers all of them,
        the cached ones too. Raises ValueError for more tokens than the context holds.
        """
        past = cache.length if cache else 0
        total = past + tokens.shape[1]
        if total > self.config.context:
            raise ValueError(f"{total} tokens do not fit into a context of {self.config.context}")
        allowed = may_look(total, present, tokens.device)[:, :, past:]
        places = _places(total, present, tokens.device)[:, past:]
        x = self.embed(tokens)
        if self.places is not None:
            x = x + self.places(places)
        for block in self.blocks:
            x = block(x, allowed, places, cache)
        logits: Tensor = self.head(self.norm(x))
        return logits


class Block(nn.Module):
    """One layer: attention, then feed-forward, each on normalised input and added to the residual stream."""

    def __init__(self, config: Config, layer: int, attend: Attend) -> None:
        super().__init__()
        self.attention_norm, self.attention = _norm(config), Attention(config, layer, attend)
        self.feed_norm, self.feed = _norm(config), FeedForward(config)

    def forward(self, x: Tensor, allowed: Tensor, places: Tensor, cache: Cache | None = None) -> Tensor:
        x = x + self.attention(self.attention_norm(x), allowed, places, cache)
        fed: Tensor = x + self.feed(self.feed_norm(x))
        return fed


class Attention(nn.Module):
    """Multi-head attention; with fewer heads of keys and values than of queries, groups share them."""

    def __init__(self, config: Config, layer: int, attend: Attend) -> None:
        super().__init__()
        self.config, self.layer, self.attend = config, layer, attend
        shared = config.kv_heads * config.head_width
        self.query = nn.Linear(config.width, config.width, bias=config.bias)
        self.key = nn.Linear(config.width, shared, bias=config.bias)
        self.value = nn.Linear(config.width, shared, bias=config.bias)
        self.out = nn.Linear(config.width, config.width, bias=config.bias)

    def forward(self, x: Tensor, allowed: Tensor, places: Tensor, cache: Cache | None = None) -> Tensor:
        rows, length, _ = x.shape
        queries, keys, values = (
            each(x).view(rows, length, -1, self.config.head_width).transpose(1, 2)
            for each in (self.query, self.key, self.value)
        )
        if self.config.positions == "rotary":
            queries, keys = rotate(queries, places), rotate(keys, places)
        if cache is not None:
            keys, values = cache.extend(self.layer, keys, values)
        sharing = self.config.heads // self.config.kv_heads
        if sharing > 1:
            keys, values = (each.repeat_interleave(sharing, 1) for each in (keys, values))
        heads = self.attend(queries, keys, values, allowed)
        out: Tensor = self.out(heads.transpose(1, 2).reshape(rows, length, -1))
        return out


class FeedForward(nn.Module):
    """Two matrices with GELU between, or three: SiLU of one product times another (N. Shazeer, 2020)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.up = nn.Linear(config.width, config.hidden, bias=config.bias)
        self.gate = nn.Linear(config.width, config.hidden, bias=config.bias) if config.gated else None
        self.down = nn.Linear(config.hidden, config.width, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        inner = F.gelu(self.up(x)) if self.gate is None else F.silu(self.gate(x)) * self.up(x)
        down: Tensor = self.down(inner)
        return down


def scaled_dot_product(queries: Tensor, keys: Tensor, values: Tensor, allowed: Tensor) -> Tensor:
    """softmax(Q Kᵀ / √head width) V over the allowed keys, by PyTorch's own function."""
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed)


def may_look(length: int, present: Tensor | None = None, device: torch.device | None = None) -> Tensor:
    """(rows or 1, 1, length, length), boolean: row i is True where token i may look at token j.

    That is where j ≤ i and j is present. A token that is padding itself may look at itself: in a row without
    any True a softmax gives NaN. Nothing that is present looks at padding, so its result does not matter.
    """
    itself = torch.eye(length, dtype=torch.bool, device=device)
    before = torch.ones(length, length, dtype=torch.bool, device=device).tril()
    if present is None:
        return before[None, None]
    return ((before & present[:, None, :]) | itself)[:, None]


def _places(length: int, present: Tensor | None, device: torch.device) -> Tensor:
    """(rows or 1, length): each token's place among those present in its row, counted from 0."""
    if present is None:
        return torch.arange(length, device=device)[None]
    return (present.long().cumsum(1) - 1).clamp(min=0)


def rotate(x: Tensor, places: Tensor, base: float = 10_000.0) -> Tensor:
    """Rotary positions (J. Su et al., "RoFormer", arXiv:2104.09864) on x (rows, heads, length, head width).

    The pair (i, i + half) turns by place · base^(−i / half).
    """
    half = x.shape[-1] // 2
    frequencies = base ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angles = (places[..., None] * frequencies)[:, None]  # rows, 1, length, half
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def _norm(config: Config) -> nn.Module:
    if config.norm == "rms":
        return nn.RMSNorm(config.width, eps=1e-5)
    return nn.LayerNorm(config.width, bias=config.bias)


def next_token_labels(tokens: Tensor, present: Tensor | None = None) -> Tensor:
    """(rows, length): the label of position i is token i + 1, IGNORE where that is padding or not there."""
    labels = torch.full_like(tokens, IGNORE)
    labels[:, :-1] = tokens[:, 1:]
    if present is not None:
        labels[:, :-1][~(present[:, 1:] & present[:, :-1])] = IGNORE
    return labels


def loss(model: GPT, tokens: Tensor, present: Tensor | None = None) -> Tensor:
    """Mean cross-entropy of the next token in nats, over the positions that have one."""
    logits = model(tokens, present)
    labels = next_token_labels(tokens, present)
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORE)


@torch.inference_mode()
def generate(model: GPT, tokens: Tensor, count: int, generator: torch.Generator | None = None) -> Tensor:
    """`count` more tokens behind `tokens` (rows, length): drawn from the model, or the likeliest without a
    `generator`. Returns (rows, length + count)."""
    cache, new = Cache(), tokens
    for _ in range(count):
        scores = model(new, cache=cache)[:, -1]
        if generator is None:
            new = scores.argmax(-1, keepdim=True)
        else:
            new = torch.multinomial(scores.softmax(-1), 1, generator=generator)
        tokens = torch.cat((tokens, new), 1)
    return tokens


def parameters(model: nn.Module) -> int:
    """How many numbers a model learns; tied ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())
