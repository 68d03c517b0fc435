"""What `gpulab.sanitize` costs against a run that is merely counted, side by side.

``python benchmarks/sanitizer.py`` prints a table of the labs' kernels, at the smallest and largest public
case of each exercise. Both times are of the processor, the best of several runs of the same launch in one
process.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from gpulab.analysis.sanitizer import sanitize
from gpulab.checks import cases, registry
from gpulab.checks.launching import given as as_arguments
from gpulab.checks.launching import launch
from gpulab.checks.spec import Case, Exercise
from gpulab.frontends.cuda.transfers import to_device
from gpulab.simulator import device as devices
from gpulab.simulator.observe import Counters
from tests.labs import notebooks

RUNS = 3


def best(call: Callable[[], Any], around: Callable[[], AbstractContextManager]) -> float:
    """The shortest of `RUNS` times, in seconds."""
    times = []
    for _ in range(RUNS):
        with around():
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
    return min(times)


def launches(exercise: Exercise, fn: Any) -> Iterator[tuple[Case, Callable[[], Any]]]:
    """The smallest and the largest case with anything to do, and what launches them."""
    sized = notebooks.by_size(exercise)
    for case in dict.fromkeys((sized[0].name, sized[-1].name)):
        chosen = next(c for c in sized if c.name == case)
        given = [
            a.value if a.role == "scalar" else as_arguments(to_device(a.value), exercise.evidence.face)
            for a in cases.arguments(exercise, chosen)
        ]

        def run(chosen: Case = chosen, given: list[Any] = given) -> None:
            if exercise.evidence.shape is None:
                fn(*given)
            else:
                shape = exercise.evidence.shape(chosen.sizes)
                launch(fn, shape.grid, shape.block, shape.shared_bytes, given)

        yield chosen, run


def main() -> None:
    device = devices.current()
    print(f"{'exercise':28}{'case':>20}{'counted ms':>14}{'sanitize ms':>14}{'ratio':>8}")
    ratios = []
    for lab in sorted(p.name for p in (notebooks.ROOT / "solutions").iterdir() if p.name[:2].isdigit()):
        exercises = [e for e in registry.of_lab(lab) if e.evidence.launches]
        answers = notebooks.answers(lab) if exercises else {}
        for exercise in exercises:
            fn = answers[notebooks.checks(lab)[exercise.name][0]]
            for case, call in launches(exercise, fn):
                call()  # compiles
                counted = best(call, lambda: device.observed(lambda launch: Counters()))
                looked = best(lambda call=call: sanitize(call), nullcontext)
                ratios.append(looked / counted)
                times = f"{1e3 * counted:14.1f}{1e3 * looked:14.1f}{ratios[-1]:8.1f}"
                print(f"{exercise.name:28}{case.name:>20}{times}", flush=True)
    ratios.sort()
    middle, highest = ratios[len(ratios) // 2], ratios[-1]
    print(f"median ratio {middle:.1f}, highest {highest:.1f}")


if __name__ == "__main__":
    main()
