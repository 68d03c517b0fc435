"""What each exercise asks, as data, and the check that a learner runs."""

from typing import TYPE_CHECKING, Any

from .spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Shape, Sizes, WrongAnswer

if TYPE_CHECKING:
    from .checking import check
    from .registry import find
    from .verdict import Verdict

# A lab's module imports this package for its records alone: what runs kernels is loaded when it is asked for.
_LATER = {"check": "checking", "find": "registry", "Verdict": "verdict"}

__all__ = [
    "EVERY",
    "Array",
    "Budget",
    "Case",
    "Exercise",
    "Prediction",
    "Scalar",
    "Shape",
    "Sizes",
    "Verdict",
    "WrongAnswer",
    "check",
    "find",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
