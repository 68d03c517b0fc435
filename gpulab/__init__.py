"""gpulab: a course on GPU acceleration that needs no GPU.

What a notebook uses, all loaded when first asked for:
`start`, `check`, `hint`, `show`, `profile`, `predict`, `need`, `recap`, `sanitize`, `sass`, `modelled`,
`trace`, `watch`, `appeal`, `tensor_map`, `timeline`, and the modules
`course`, `cuda`, `cupy`, `cupyx`, `triton`, `plot`, `hardware`.
`profile` is both: a package, and what one calls.
"""

from typing import TYPE_CHECKING, Any

from . import habits, names
from .foundation.version import VERSION

__version__ = VERSION

names.install()
habits.install()

if TYPE_CHECKING:
    from . import cuda, cupy, cupyx, plot
    from .analysis import profile
    from .analysis.machine.executed import sass
    from .analysis.machine.modelled import modelled
    from .analysis.machine.overlap import timeline
    from .analysis.sanitizer.sanitize import sanitize
    from .analysis.tracer.trace import trace
    from .app import course
    from .app.appeal import appeal
    from .checks.face import check, hint, predict, show, watch
    from .checks.model_answers import model_answer
    from .checks.need import need
    from .checks.predictions import recap
    from .checks.start import start
    from .frontends.cupy.tensor_maps import tensor_map
    from .simulator import hardware

_MODULES = ("course", "cuda", "cupy", "cupyx", "hardware", "plot", "profile", "triton")
_FUNCTIONS = {
    "appeal": "app.appeal",
    "check": "checks.face",
    "hint": "checks.face",
    "model_answer": "checks.model_answers",
    "modelled": "analysis.machine.modelled",
    "need": "checks.need",
    "predict": "checks.face",
    "recap": "checks.predictions",
    "sanitize": "analysis.sanitizer.sanitize",
    "sass": "analysis.machine.executed",
    "show": "checks.face",
    "start": "checks.start",
    "tensor_map": "frontends.cupy.tensor_maps",
    "timeline": "analysis.machine.overlap",
    "trace": "analysis.tracer.trace",
    "watch": "checks.face",
}

__all__ = [
    "appeal",
    "check",
    "course",
    "cuda",
    "cupy",
    "cupyx",
    "hardware",
    "hint",
    "model_answer",
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
    "tensor_map",
    "timeline",
    "trace",
    "triton",
    "watch",
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
