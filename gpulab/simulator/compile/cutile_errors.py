"""What cuTile refuses: its own words, which name the learner's line, and the usual cure."""

from __future__ import annotations

from .kernel import cure_of

CURES: tuple[tuple[str, str], ...] = (  # what the words contain, as a pattern, and what helps
    (
        "^$",
        "cuTile's compiler failed in this line and gives no reason. Is each value there a number or a tile?",
    ),
    (r"numpy\.ufunc", "NumPy cannot compute with tiles. ct.exp, ct.sqrt, ct.sum and others can."),
    ("tensor_view rank and tile rank", "A tile is loaded and stored with as many axes as its array has."),
    ("expects a tile kernel .* got function", "Is @ct.kernel in the line above the function?"),
    ("Grid must be a tuple", "A grid of 8 blocks is (8,)."),
    ("an integer is required", "A grid has whole numbers: // divides without a fraction."),
    (
        "Expected a constant integer tuple",
        "A tile's shape is known when the kernel is compiled: numbers, or parameters that are annotated as "
        "ct.Constant[int].",
    ),
    (
        "Expected a scalar value, but given value has type Tile",
        "if and while ask for one value. ct.where chooses for each element of a tile.",
    ),
    ("cannot implicitly cast", "Convert the tile before you store it: tile.astype(array.dtype)."),
    (
        "Unsupported syntax",
        "Tile code has no lists, dictionaries and exceptions; a tuple holds several values.",
    ),
)


def in_words(error: BaseException) -> str:
    """cuTile's own words, and the cure behind them."""
    words = str(error).rstrip()
    reason = "" if words.startswith("\n") else words  # the line alone, where there is no reason
    return "\n".join(filter(None, [words.strip("\n"), cure_of(reason, CURES)]))
