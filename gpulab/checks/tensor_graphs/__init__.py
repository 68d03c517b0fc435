"""A PyTorch function as data: the operators that it dispatches, recorded without contents, replayed with
them.

`record` runs a function on fake tensors and gives a `Graph`; `replay` runs a graph on real arrays. Nothing of
the function is needed for that, and nothing of it runs.
"""

from .graph import Graph, NotAGraph
from .recording import file_of, record
from .replaying import Replay, prepare, replay

__all__ = ["Graph", "NotAGraph", "Replay", "file_of", "prepare", "record", "replay"]
