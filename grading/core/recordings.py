"""A recording that outlives a crash: begun anew without the cell or exercise that ended the process.

What a sandbox wrote is not read here, because nothing in it is to be believed. All that is looked for is the
last of the lines that say where the recorder was, which the judge knows itself, byte by byte.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from grading.core import texts
from grading.core.records import DIED
from grading.core.sandbox import Limits, Outcome

MOST_CRASHES = 5
DONE = b'{"line":"done"}\n'


@dataclass(frozen=True)
class Recording:
    """How a recording ended at last, with all that came out, and the cells that it was ended by."""

    outcome: Outcome
    crashed: frozenset[str] = frozenset()

    def survived(self, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The steps without the cells that ended a process."""
        return [step for step in steps if step.get("cell") not in self.crashed]


def whole(
    job: dict[str, Any],
    limits: Limits,
    record: Callable[[dict[str, Any], Limits], Outcome],
) -> Recording:
    """Record a job with `record`, as often as it takes within the limits.

    A step that ends the process is a failure in the record; the next begin runs the cells before it again,
    and records the exercises after it.
    """
    until = time.monotonic() + limits.seconds
    steps, content, crashed = job["steps"], b"", set[str]()
    for left_over in reversed(range(MOST_CRASHES + 1)):
        left = max(until - time.monotonic(), 0.0)
        outcome = record({**job, "steps": steps}, replace(limits, seconds=left))
        ended = outcome.end == "died" or (outcome.end == "done" and not outcome.content.endswith(DONE))
        content += outcome.content[: outcome.content.rfind(b"\n") + 1]  # what follows was cut off
        number = _last(outcome.content, steps) if ended and left_over else None
        if number is None or len(content) > limits.file or time.monotonic() >= until:
            break
        how = texts.DIED.format(how=texts.clean(outcome.how, 120)) if outcome.how else texts.ENDED_ITSELF
        where = _place(steps[number])
        content += _line("failed", kind=DIED, error=how, **where)
        crashed |= {where["cell"]} if "cell" in where else set()
        steps = [s for i, s in enumerate(steps) if i > number or (i < number and "cell" in s)]
    return Recording(replace(outcome, content=content), frozenset(crashed))


def _last(content: bytes, steps: list[dict[str, Any]]) -> int | None:
    """The number of the step that the recorder said last that it had come to."""
    start = content.rfind(b'{"line":"at",')
    said = content[start : content.find(b"\n", start) + 1] if start >= 0 else b""
    return next((i for i, step in enumerate(steps) if said == _line("at", **_place(step))), None)


def _place(step: dict[str, Any]) -> dict[str, str]:
    """A cell's or an exercise's name, as the recorder says it."""
    return {key: step[key] for key in ("cell", "exercise") if key in step}


def _line(line: str, **facts: Any) -> bytes:
    """A line as the recorder writes it."""
    return json.dumps({"line": line, **facts}, separators=(",", ":")).encode() + b"\n"
