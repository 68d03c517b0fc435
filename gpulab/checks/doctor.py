"""What the kernel doctor sees in an answer that is wrong: the case runs once more, under all its tools."""

from __future__ import annotations

from gpulab.analysis.sanitizer import Tools
from gpulab.simulator import device as devices
from gpulab.simulator.observe import Races

from .launched import Launched
from .orders import race_words
from .parts import Detail
from .spec import Case

TOLD = ("race", "barrier")  # what a sentence on the wrong element does not say already


def seen(answer: Launched, case: Case) -> tuple[Detail, ...]:
    """The worst finding; empty if there is none. In a detective only a race is told, and not its cure."""
    tools = Tools(devices.current())
    answer.run(case, tools.standing())
    if races := tools.of(Races):
        return (Detail(race_words(races[0], answer.exercise.detective)),)
    found = [finding for finding in tools.findings() if finding.kind in TOLD]
    found += tools.undefined_results(certain=True) + tools.undefined_results(certain=False)
    return () if answer.exercise.detective else tuple(Detail(str(finding)) for finding in found[:1])
