"""The class that a course was made for: its seed, and the public cases that follow from it.

`python -m grading course` writes a `cohort.json` beside this file. Public contents and questions come from
the cohort's seed, and so do the awkward sizes of exercises that say which of them may vary. What an exercise
asks, its types and its round sizes stay, because the lab's text speaks of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd
from pathlib import Path
from zlib import crc32

import numpy as np

from .spec import EVERY, Case, Exercise

FILE = Path(__file__).with_name("cohort.json")
WARP = 32


@dataclass(frozen=True)
class Cohort:
    """A class of learners, and the seed of all that its public cases have of their own."""

    name: str
    seed: int


NOBODY = Cohort("", 2024)  # the course as it is published: every size as the labs' modules say


def load(path: Path = FILE) -> Cohort:
    """The cohort of this installation; NOBODY without a file. Raises ValueError for a damaged one."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Cohort(str(data["name"]), int(data["seed"]))
    except FileNotFoundError:
        return NOBODY
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: take it from the course's repository again ({error})") from None


def of_cohort(exercise: Exercise, cohort: Cohort) -> Exercise:
    """The exercise with the sizes that the cohort has, and their names wherever they are named."""
    if cohort == NOBODY or not exercise.varies:
        return exercise
    chosen = numbers(exercise, cohort)
    cases = tuple(_varied(case, exercise.varies, chosen) for case in exercise.cases)
    names = {old.name: new.name for old, new in zip(exercise.cases, cases, strict=True)}
    budgets = tuple(
        budget if budget.case in (None, EVERY) else replace(budget, case=names[str(budget.case)])
        for budget in exercise.budgets
    )
    return replace(exercise, cases=cases, budgets=budgets, evidence=exercise.evidence.at_cases(names))


def alike(size: int) -> list[int]:
    """Other sizes of the same kind: as many warps, the same alignment; a multiple of a warp has none.

    Below a warp they lie between the same two powers of two. The alignment is the largest power of two, up to
    a warp, that divides the size.
    """
    if size < 2 or size % WARP == 0:
        return []
    low = size // WARP * WARP if size > WARP else 1 << (size.bit_length() - 1)
    high = low + WARP if size > WARP else 2 * low
    return [n for n in range(low + 1, high) if n != size and gcd(n, WARP) == gcd(size, WARP)]


def numbers(exercise: Exercise, cohort: Cohort) -> dict[int, int]:
    """The cohort's size for each one that it changes: equal ones stay equal, different ones different."""
    sizes = {
        value
        for case in exercise.cases
        for name in exercise.varies
        if isinstance(value := case.sizes.get(name), int)
    }
    generator = np.random.default_rng([cohort.seed, crc32(exercise.name.encode())])
    taken, chosen = set(sizes), {}
    for size in sorted(sizes):
        others = [n for n in alike(size) if n not in taken]
        if others:
            chosen[size] = int(generator.choice(others))
            taken.add(chosen[size])
    return chosen


def _varied(case: Case, names: tuple[str, ...], chosen: Mapping[int, int]) -> Case:
    sizes = {
        name: chosen.get(value, value) if name in names and isinstance(value, int) else value
        for name, value in case.sizes.items()
    }
    changed = {int(case.sizes[name]) for name in sizes if sizes[name] != case.sizes[name]}
    return Case(renumbered(case.name, {n: chosen[n] for n in changed}), sizes)


def renumbered(text: str, chosen: Mapping[int, int]) -> str:
    """A text with other numbers; thousands stay separated where they were."""

    def other(match: re.Match[str]) -> str:
        number = int(match[0].replace(",", ""))
        if number not in chosen:
            return match[0]
        return f"{chosen[number]:,}" if "," in match[0] else str(chosen[number])

    return re.sub(r"\d+(?:,\d{3})*", other, text)


HERE = load()
