"""Steps through a kernel with chosen threads: a row per executed source line, with the named variables."""

from .threads import CannotTrace
from .trace import Trace, trace

__all__ = ["CannotTrace", "Trace", "trace"]
