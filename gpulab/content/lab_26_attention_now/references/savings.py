"""Expected results of the exercises of lab 26, part B."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes

from .softmax import attention

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]
BLOCK = 64


def _masked(inputs: Arrays, seen: np.ndarray) -> Expected:
    q, k, v = (inputs[name].astype(np.float64) for name in "qkv")
    return {"out": attention(np.where(seen, q @ k.T, -np.inf), v)[0]}


@usual_slips(
    (
        lambda inputs, sizes: _masked(inputs, _listed(inputs, sizes)),
        "The same happens if queries see all keys of their blocks. In the block on the diagonal, the "
        "keys after a "
        "query's own place must be masked.",
    ),
)
def blocks(inputs: Arrays, sizes: Sizes) -> Expected:
    return _masked(inputs, np.tril(_listed(inputs, sizes)))


def _listed(inputs: Arrays, sizes: Sizes) -> np.ndarray:
    """Which keys are in the blocks that each query's list names."""
    n = int(sizes["n"])
    seen = np.zeros((n, n), bool)
    for row, (there, listed) in enumerate(zip(inputs["counts"], inputs["lists"], strict=True)):
        for block in listed[: int(there)].astype(int):
            seen[row * BLOCK : (row + 1) * BLOCK, block * BLOCK : (block + 1) * BLOCK] = True
    return seen


def mask(inputs: Arrays, sizes: Sizes) -> Expected:
    return _masked(inputs, inputs["mask"] != 0)


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


@usual_slips(
    (
        lambda inputs, sizes: _chosen(inputs, sizes, lambda worth: worth[0]),
        "The same happens if the first head alone chooses the blocks. Add up the worth for all heads.",
    ),
)
def select(inputs: Arrays, sizes: Sizes) -> Expected:
    return _chosen(inputs, sizes, lambda worth: worth.sum(0))


def _chosen(inputs: Arrays, sizes: Sizes, together: Callable[[np.ndarray], np.ndarray]) -> Expected:
    """Attention to the best blocks, where `together` makes one worth of those of all heads."""
    q, k, v, means = (inputs[name].astype(np.float64) for name in ("q", "k", "v", "means"))
    wanted = together(_softmax(q @ means.T))
    best = np.sort(np.argsort(-wanted)[: int(sizes["keep"])])
    keys = (best[:, None] * BLOCK + np.arange(BLOCK)).ravel()
    return {"out": _softmax(q @ k[keys].T) @ v[keys]}


def absorb(inputs: Arrays, sizes: Sizes) -> Expected:
    """As a model is trained: keys and values of every head from the latents."""
    q, q_place, latent, k_place, w_k, w_v = (
        inputs[name].astype(np.float64) for name in ("q", "q_place", "latent", "k_place", "w_k", "w_v")
    )
    keys, values = (np.einsum("mr,hdr->hmd", latent, w) for w in (w_k, w_v))
    scores = np.einsum("hd,hmd->hm", q, keys) + q_place @ k_place.T
    return {"out": np.einsum("hm,hmd->hd", _softmax(scores), values)}


def chunk(inputs: Arrays, sizes: Sizes) -> Expected:
    """Token by token; the state is (values, keys)."""
    q, k, v, alpha, beta = (inputs[name].astype(np.float64) for name in ("q", "k", "v", "alpha", "beta"))
    state, out = np.zeros((v.shape[1], k.shape[1])), np.empty_like(v)
    for t in range(len(q)):
        state = alpha[t] * state
        state = state + np.outer(beta[t] * (v[t] - state @ k[t]), k[t])
        out[t] = state @ q[t]
    return {"out": out}


REFERENCES: dict[str, Callable[..., Any]] = {
    "modern.blocks": blocks,
    "modern.select": select,
    "modern.absorb": absorb,
    "modern.chunk": chunk,
    "modern.mask": mask,
}
