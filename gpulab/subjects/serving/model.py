"""The engine's steps on a real model: a small GPT on this machine's CPU. Seconds are real ones.

All requests that decode go through the model together, and all prompts together: rows of different lengths
are padded. Large engines avoid the padding by kernels that read block tables (lab 19).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from gpulab.subjects.models.gpt import GPT, Cache

from .engine import Life
from .machine import Work


class OnModel:
    """Carries steps out on a GPT: an engine's `execute`.

    `prompts` are token numbers by request; they may be added to while it serves. `tokens` has what the model
    has said so far, the likeliest token each time. A request that says `stop` is through.
    """

    def __init__(
        self,
        model: GPT,
        prompts: Mapping[int, Sequence[int]],
        stop: int | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.model, self.prompts, self.stop, self.clock = model.eval(), prompts, stop, clock
        self.tokens: dict[int, list[int]] = {}
        self._caches: dict[int, Cache] = {}

    def __call__(self, busy: Sequence[tuple[Life, int]], work: Work) -> float:
        """Do a step; returns its seconds."""
        start = self.clock()
        with one_thread():
            for group in ([b for b in busy if b[0].left], [b for b in busy if not b[0].left]):
                if group:
                    self._forward(group)
        return self.clock() - start

    @torch.inference_mode()
    def _forward(self, busy: Sequence[tuple[Life, int]]) -> None:
        caches, rows = [], []
        for life, new in busy:
            number = life.request.number
            if not life.cached:
                self._caches[number] = Cache()  # the first piece, or all of it again after a preemption
                self.tokens.setdefault(number, [])
            caches.append(self._caches[number])
            said = [*self.prompts[number], *self.tokens[number]]
            rows.append(said[life.cached : life.cached + new])
        likeliest = step(self.model, rows, caches)
        for (life, new), token in zip(busy, likeliest, strict=True):
            if life.left > new:
                continue  # prompts that are not through say nothing yet
            self.tokens[life.request.number].append(token)
            if token == self.stop:
                life.stopped = True

    def forget(self, number: int) -> None:
        """Free what is kept for a request that is through."""
        self._caches.pop(number, None)
        self.tokens.pop(number, None)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Matrices this small are slower on several threads, above all where others use the cores, too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def step(model: GPT, rows: Sequence[Sequence[int]], caches: Sequence[Cache]) -> list[int]:
    """Feed each row's new tokens behind what its cache holds, all rows at once, and extend the caches.

    Returns the likeliest next token of each row. Caches are padded in front, new tokens behind.
    """
    past, longest = max(cache.length for cache in caches), max(map(len, rows))
    tokens = torch.zeros(len(rows), longest, dtype=torch.long)
    present = torch.zeros(len(rows), past + longest, dtype=torch.bool)
    for i, (row, cache) in enumerate(zip(rows, caches, strict=True)):
        tokens[i, : len(row)] = torch.tensor(row)
        present[i, past - cache.length : past + len(row)] = True
    together = Cache()
    if past:
        for layer in range(model.config.layers):
            keys = _stacked(model, [cache.layers.get(layer, (None, None))[0] for cache in caches], past)
            values = _stacked(model, [cache.layers.get(layer, (None, None))[1] for cache in caches], past)
            together.layers[layer] = keys, values
    logits = model(tokens, present, together)
    for i, (row, cache) in enumerate(zip(rows, caches, strict=True)):
        cut = slice(past - cache.length, past + len(row))
        for layer, (keys, values) in together.layers.items():
            cache.layers[layer] = keys[i : i + 1, :, cut], values[i : i + 1, :, cut]
    return [int(logits[i, len(row) - 1].argmax()) for i, row in enumerate(rows)]


def _stacked(model: GPT, each: Sequence[Tensor | None], length: int) -> Tensor:
    """Keys or values of several rows, (rows, heads, length, head width), zeros in front."""
    config = model.config
    out = torch.zeros(len(each), config.kv_heads, length, config.head_width)
    for i, one in enumerate(each):
        if one is not None:
            out[i, :, length - one.shape[2] :] = one[0]
    return out
