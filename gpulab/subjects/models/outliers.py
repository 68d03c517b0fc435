"""Outliers in the activations, planted.

Large language models grow a few channels with values tens of times as large as the others (T. Dettmers et
al., "LLM.int8()", arXiv:2208.07339). Small ones do not. Here they are made, and the model computes the same
function as before.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .gpt import GPT, Block


@torch.no_grad()
def plant_outliers(model: GPT, channels: Sequence[int] = (5, 23), factor: float = 50.0) -> GPT:
    """Multiply `channels` of what every block's norms put out by `factor`, and divide the columns of the
    weights that read them. Changes the model in place and returns it; its function stays, up to rounding.

    Raises ValueError for a channel that the model does not have and a factor that is not positive.
    """
    if not factor > 0:
        raise ValueError(f"a channel cannot be multiplied by {factor}: its sign or value would be lost")
    if wrong := [c for c in channels if not 0 <= c < model.config.width]:
        raise ValueError(f"no channel {wrong[0]} in a model that is {model.config.width} wide")
    there = sorted(set(channels))
    for block in model.blocks:
        for norm, readers in readers_of_norms(block):
            for parameter in norm.parameters():  # weight and, if it has one, bias
                parameter[there] *= factor
            for reader in readers:
                reader.weight[:, there] /= factor
    return model


def readers_of_norms(block: torch.nn.Module) -> list[tuple[torch.nn.Module, list[torch.nn.Linear]]]:
    """Each norm of a block with the linear layers that read what it puts out."""
    assert isinstance(block, Block)
    attention, feed = block.attention, block.feed
    return [
        (block.attention_norm, [attention.query, attention.key, attention.value]),
        (block.feed_norm, [feed.up] if feed.gate is None else [feed.up, feed.gate]),
    ]
