"""Lab 08: the judge's own cases. The last one of an exercise is the one that its budgets look at."""

from gpulab.checks.spec import Case


def _case(**sizes: int | float | str) -> Case:
    return Case(", ".join(f"{name} {value}" for name, value in sizes.items()), sizes)


CASES: dict[str, tuple[Case, ...]] = {
    "pytorch.fold": (
        _case(rows=3, cols=6),
        _case(rows=65, cols=1),
        _case(rows=0, cols=3),
        _case(rows=777, cols=96),
    ),
    "pytorch.adamw_step": (
        _case(width=5, blocks=0, step=2),
        _case(width=4, blocks=1, step=100_000),
        _case(width=6, blocks=13, step=1),
    ),
    "pytorch.clip": (
        _case(width=4, blocks=0, scale=3.0),
        _case(width=4, blocks=1, scale=0.0),
        _case(width=2, blocks=2, scale=0.002),
        _case(width=6, blocks=13, scale=1.5),
    ),
    "pytorch.compiles": (
        _case(kind="one axis"),
        _case(kind="two axes"),
        _case(kind="size 1"),
        _case(kind="any calls"),
    ),
    "pytorch.read_ncu": (
        _case(kind="a report"),
        _case(kind="lines before it"),
        _case(kind="other units"),
        _case(kind="other columns"),
        _case(kind="any report"),
    ),
    "pytorch.segments": (
        _case(kind="one"),
        _case(kind="again"),
        _case(kind="neighbours"),
        _case(kind="best fit"),
        _case(kind="random", length=40),
        _case(kind="random", length=250),
    ),
    "pytorch.place": (_case(kind="small"), _case(blocks=5), _case(blocks=28)),
    "pytorch.gradients": (
        _case(blocks=2, rows=5, width=3),
        _case(blocks=11, rows=9, width=4),
        _case(blocks=50, rows=384, width=12),
    ),
    "pytorch.epoch": (
        _case(kind="no workers"),
        _case(kind="even"),
        _case(kind="one slow batch"),
        _case(kind="any"),
    ),
    "pytorch.idle": (
        _case(kind="one stream"),
        _case(kind="host and device"),
        _case(kind="two streams"),
        _case(kind="any"),
    ),
    "pytorch.benchmark": (
        _case(kind="asynchronous"),
        _case(kind="compiled at the first call"),
        _case(kind="cached"),
        _case(kind="disturbed"),
        _case(kind="any"),
    ),
}
