"""What the sanitizer finds in a wrong answer: the case runs once more, under all of its tools."""

from __future__ import annotations

from gpulab.analysis.sanitizer import Tools
from gpulab.simulator import device as devices
from gpulab.simulator.observe import Races

from .launched import Launched
from .orders import race_words
from .parts import Detail
from .spec import Case

REPORTED = ("race", "barrier")  # kinds that say more than the sentence about the wrong element does


def findings(answer: Launched, case: Case) -> tuple[Detail, ...]:
    """The worst finding, or nothing. In a detective exercise only a race is reported, without its cure."""
    tools = Tools(devices.current())
    answer.run(case, tools.standing())
    if races := tools.of(Races):
        return (Detail(race_words(races[0], answer.exercise.detective)),)
    found = [finding for finding in tools.findings() if finding.kind in REPORTED]
    found += tools.undefined_results(certain=True) + tools.undefined_results(certain=False)
    return () if answer.exercise.detective else tuple(Detail(str(finding)) for finding in found[:1])
