"""Text written from a seed, whose entropy is known: what a model's loss can reach, and what it cannot.

A story picks five words, evenly and independently, and then repeats four of them:

    ana lost a red kite near the mill. who lost a red kite? ana.

Only the picks cannot be foreseen. So no model that sees nothing but what stands before a character reaches a
smaller loss on fresh text than the entropy of the picks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

NAMES = ("ana", "ben", "cleo", "dina", "emil", "finn", "gus", "hana")
DEEDS = ("lost", "drew", "sold", "hid", "made", "took")
COLOURS = ("red", "blue", "green", "white", "black")
THINGS = ("kite", "drum", "map", "lamp", "boat", "shoe", "coin", "bell")
PLACES = ("mill", "lake", "gate", "barn", "pier", "wall")
PICKS = (NAMES, DEEDS, COLOURS, THINGS, PLACES)
TEMPLATE = "{0} {1} a {2} {3} near the {4}. who {1} a {2} {3}? {0}.\n"


class Stories:
    """Endless text from a seed; the same seed gives the same text."""

    def __init__(self, seed: int) -> None:
        self._numbers = np.random.default_rng(seed)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """One story, a line that ends in a line break."""
        return TEMPLATE.format(*(words[self._numbers.integers(len(words))] for words in PICKS))

    def text(self, length: int) -> str:
        """`length` characters of stories, from the start of one."""
        parts: list[str] = []
        written = 0
        while written < length:
            parts.append(next(self))
            written += len(parts[-1])
        return "".join(parts)[:length]

    def windows(self, rows: int, length: int) -> np.ndarray:
        """(rows, length) int64: tokens of text that starts at the start of a story, each row its own."""
        return np.array([encode(self.text(length)) for _ in range(rows)], dtype=np.int64)

    def padded(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Tokens (rows, longest), int64, and which are present, boolean. A row is a line break and a story.

        Shorter stories are padded at the end with token 0, which is the line break: what is padding, only the
        second array says.
        """
        lines = [encode("\n" + next(self)) for _ in range(rows)]
        lengths = np.array([len(line) for line in lines], dtype=np.int64)
        present = np.arange(lengths.max(initial=0)) < lengths[:, None]
        tokens = np.zeros(present.shape, np.int64)
        tokens[present] = [token for line in lines for token in line]
        return tokens, present


# Nats of the picks of one story. Every pick can be read off the text, so this is the story's entropy: the
# least that the losses of its characters can sum to on average, for a model that sees only what came before.
STORY_NATS = sum(math.log(len(words)) for words in PICKS)


def entropy() -> float:
    """Nats per character of endless stories: a story's over its mean length (renewal reward)."""
    means = [sum(map(len, words)) / len(words) for words in PICKS]
    fixed = len(TEMPLATE.format(*[""] * len(PICKS)))
    length = fixed + sum(mean * TEMPLATE.count(f"{{{i}}}") for i, mean in enumerate(means))
    return STORY_NATS / length


# ---------------------------------------------------------------- characters as tokens

CHARACTERS = "\n" + "".join(sorted(set(TEMPLATE.format(*(" ".join(words) for words in PICKS))) - {"\n"}))
VOCABULARY = len(CHARACTERS)
_NUMBERS = {character: number for number, character in enumerate(CHARACTERS)}


def encode(text: str) -> list[int]:
    """Each character's number. Raises ValueError for one that no story has."""
    if strange := sorted(set(text) - set(CHARACTERS)):
        raise ValueError(f"no story has the character {strange[0]!r}; they have {CHARACTERS!r}")
    return [_NUMBERS[character] for character in text]


def decode(tokens: list[int] | np.ndarray) -> str:
    """The text of some numbers."""
    return "".join(CHARACTERS[int(token)] for token in tokens)
