"""A small GPT that has learnt `text.Stories`: trained once, then kept in the user's cache folder.

For labs that need a model whose weights mean something: to quantise, prune, distil, fine-tune or serve. Its
perplexity has a known floor: a model that has learnt everything is as surprised by a story as there are
stories, exp(`text.STORY_NATS`) = 11,520.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from gpulab.foundation import underway
from gpulab.foundation.cache_folder import cache_folder

from . import gpt, text, training
from .config import Config

SMALL = Config(text.VOCABULARY, context=80, width=64, layers=2, heads=4)


@dataclass(frozen=True)
class Recipe:
    """All that a training run depends on; another recipe is another file in the cache.

    AdamW on `steps` batches of `rows` fresh stories each; the learning rate rises over 20 steps to `rate` and
    falls along a cosine to 0. `revision` is raised when the code of the model or of the training changes.
    """

    config: Config = SMALL
    steps: int = 1000
    rows: int = 16
    rate: float = 4e-3
    seed: int = 0
    revision: int = 1

    def rate_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        return self.rate * min(1.0, (step + 1) / 20) * 0.5 * (1 + math.cos(math.pi * step / self.steps))

    @property
    def name(self) -> str:
        """The cache's file name; the same text, model, training and PyTorch give the same name."""
        told = repr((self, text.PICKS, text.TEMPLATE, torch.__version__))
        return f"stories-{hashlib.sha256(told.encode()).hexdigest()[:16]}.pt"


STORIES = Recipe()


def trained(recipe: Recipe = STORIES, *, progress: bool = True) -> gpt.GPT:
    """The model of a recipe: 106,752 parameters by default. The first call trains it (20 to 30 s on one
    core) and shows how far it is; in a terminal a bar does, if `progress`; later calls read the cache.

    Each call returns a model of its own, to be changed at will. A cache that is damaged or cannot be written
    costs another training and nothing else.
    """
    path = cache_folder() / recipe.name
    model = gpt.GPT(recipe.config)
    try:
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception:  # missing, cut off, or anything else that torch.load meets in a damaged file
        model = train(recipe, _bar if progress and not underway.watched() else None)
        _save(model, path)
    return model.eval()


def train(recipe: Recipe, told: Callable[[int, int, float], None] | None = None) -> gpt.GPT:
    """Train a model from scratch. The same recipe gives the same weights. PyTorch's own random numbers are
    left as they were.

    `told` is called after each step with the steps done, all steps, and the loss in nats per character.
    """
    with _one_thread():
        return _train(recipe, told)


def _train(recipe: Recipe, told: Callable[[int, int, float], None] | None) -> gpt.GPT:
    stories = text.Stories(recipe.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        model = gpt.GPT(recipe.config)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    for step in training.steps(recipe.steps, "training a small GPT, once"):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate_at(step)
        tokens, present = map(torch.from_numpy, stories.padded(recipe.rows))
        loss = gpt.loss(model, tokens, present)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if told:
            told(step + 1, recipe.steps, loss.item())
    return model


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """A model this small gains little from more, and sums in another order would give other weights."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def fresh(rows: int = 300, seed: int = 10**6) -> tuple[Tensor, Tensor]:
    """Stories drawn anew: tokens (rows, longest), int64, and which are present, boolean. Another `seed` gives
    others, for calibration say. Training has met most of the 11,520 that there are; nothing is won by knowing
    them by heart, since each is as likely as any other."""
    tokens, present = text.Stories(seed).padded(rows)
    return torch.from_numpy(tokens), torch.from_numpy(present)


@torch.no_grad()
def story_nats(model: torch.nn.Module, tokens: Tensor, present: Tensor) -> float:
    """Nats that a model needs for a story, the mean over the rows of `fresh`: `text.STORY_NATS` = 9.35
    for one that has learnt everything. Its exponential is the **perplexity** per story."""
    labels = int((gpt.next_token_labels(tokens, present) != gpt.IGNORE).sum())
    mean: float = gpt.loss(model, tokens, present).item()
    return mean * labels / len(tokens)


def _save(model: gpt.GPT, path: Path) -> None:
    """In one move, so that nobody reads half a file. A folder that cannot be written is no error."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                torch.save(model.state_dict(), file)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _bar(done: int, steps: int, loss: float) -> None:
    if done % 20 and done != steps:
        return
    filled = 30 * done // steps
    line = f"\rtraining a small GPT, once: [{'#' * filled}{'.' * (30 - filled)}] {done}/{steps}"
    print(f"{line}, loss {loss:.3f}", end="\n" if done == steps else "", flush=True)
