"""`gpulab.start`: the one line of a lab's import cell."""

from __future__ import annotations

from dataclasses import dataclass

from gpulab.foundation.display import Card, Note, Shown, notebook
from gpulab.foundation.errors import Message
from gpulab.foundation.version import VERSION
from gpulab.simulator import compile
from gpulab.simulator import device as devices

from . import first_aid, messages, progress, registry, unread


class UnknownLab(Message, LookupError):
    """No lab has that number; the message says which have."""


@dataclass(frozen=True, repr=False)
class Start(Shown):
    """What runs here, and how far the lab is."""

    line: str

    def __str__(self) -> str:
        return self.line

    def card(self) -> Card:
        return Card((Note(self.line),))


def start(lab: str = "", *, gpu: str = "") -> Start:
    """Show the first line of a lab: version, device, compiler, and how many exercises are done.

    `lab` is its number or folder, ``"04"`` or ``"04_memory_hierarchy"``. Without it the progress is left out.
    `gpu` names the GPU to simulate, for a lab that needs the instructions of a certain one, and
    comes before GPULAB_GPU. From then on figures have alt texts. Raises UnknownLab, and hardware.UnknownGPU
    in one line that lists the names.

    >>> first_line = gpulab.start("04")
    """
    number = registry.lab_number(lab) if lab else ""
    of_lab = registry.of_lab(lab) if lab else ()
    if lab and not of_lab:
        numbers = sorted({registry.lab_number(e.lab) for e in registry.exercises()})
        raise UnknownLab(messages.unknown_lab(lab, numbers))
    if gpu:
        devices.simulate(gpu)
    _figures_have_words()
    unread.watch()
    first_aid.install()
    names = tuple(e.name for e in of_lab)
    if lab and notebook() is not None:
        progress.remember(number, names)
    done = progress.done(names)
    return Start(
        messages.start(
            VERSION.removesuffix(".0"), _device(), compile.compiler_version(), number, done, len(of_lab)
        )
    )


def _figures_have_words() -> None:
    """In a notebook figures of pyplot show themselves with an alt text.

    By their own method: Jupyter's backend drops what was registered for figures before it starts.
    """
    if notebook() is not None:
        from matplotlib.figure import Figure

        from gpulab.plot import alt_text

        Figure._repr_html_ = alt_text.html  # type: ignore[assignment]


def _device() -> str:
    name = devices.current().gpu.name
    if devices.uses_gpu():
        return messages.on_gpu(name)
    return messages.simulating(name, devices.has_gpu())
