"""gpulab: a course on GPU acceleration that needs no GPU.

What a notebook uses, all loaded when first asked for:
`start`, `check`, `hint`, `show`, `profile`, `predict`, `need`, `recap`, `sanitize`, `sass`, `modelled`,
`trace`, and the modules
`course`, `cuda`, `cupy`, `cupyx`, `triton`, `plot`, `hardware`.
`profile` is both: a package, and what one calls.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import course, cuda, cupy, cupyx, hardware, plot, profile
    from .exercises.face import check, hint, predict, show
    from .exercises.need import need
    from .exercises.predictions import recap
    from .exercises.start import start
    from .machine.executed import sass
    from .machine.modelled import modelled
    from .sanitizer.sanitize import sanitize
    from .tracer.trace import trace

_MODULES = ("course", "cuda", "cupy", "cupyx", "hardware", "plot", "profile", "triton")
_FUNCTIONS = {
    "check": "exercises.face",
    "hint": "exercises.face",
    "modelled": "machine.modelled",
    "need": "exercises.need",
    "predict": "exercises.face",
    "recap": "exercises.predictions",
    "sanitize": "sanitizer.sanitize",
    "sass": "machine.executed",
    "show": "exercises.face",
    "start": "exercises.start",
    "trace": "tracer.trace",
}

__all__ = [
    "check",
    "course",
    "cuda",
    "cupy",
    "cupyx",
    "hardware",
    "hint",
    "modelled",
    "need",
    "plot",
    "predict",
    "profile",
    "recap",
    "sanitize",
    "sass",
    "show",
    "start",
    "trace",
    "triton",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _FUNCTIONS:
        return getattr(import_module(f"{__name__}.{_FUNCTIONS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
