"""Programs of several processes from a notebook cell: ranks started, watched, recorded, and ended.

def hello():
    x = torch.full((4,), float(dist.get_rank()))
    dist.all_reduce(x)
    return x

results = distributed.run(hello, 4)      # one process a rank, joined by gloo
results[0], results.calls, results.bytes_sent
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .launch import RanksStopped, Results, run
    from .records import Call

__all__ = ["Call", "RanksStopped", "Results", "run"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from importlib import import_module

        module = "records" if name == "Call" else "launch"
        return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
