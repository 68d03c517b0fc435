"""What a case hands to the learner's code, contents from a seed and poison, and what should come out."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from zlib import crc32

import numpy as np

from . import cohort
from .registry import Reference
from .spec import Answer, Array, Case, Contents, Exercise, OnArrays, OnQuestions, Scalar, Sizes

PUBLIC_SEED = cohort.HERE.seed  # of the learner's check; the judge has its own

POISON = 0xFF  # each byte of an output before the run: NaN as a float


@dataclass(frozen=True)
class Argument:
    """One argument of one case. `value` is an array (poison for ``out``) or a NumPy scalar."""

    spec: Array | Scalar
    value: Any

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def role(self) -> str:
        """``in``, ``out``, ``inout`` or ``scalar``."""
        return self.spec.role if isinstance(self.spec, Array) else "scalar"


def generator(exercise: Exercise, case: Case, seed: int) -> np.random.Generator:
    """Random numbers that depend on the exercise, the case and the seed, and on nothing else."""
    return np.random.default_rng([seed, crc32(f"{exercise.name}/{case.name}".encode())])


def contents(array: Array, sizes: Sizes, numbers: np.random.Generator) -> np.ndarray:
    """The contents of an array that the learner's code reads. Raises ValueError for an unknown fill."""
    dtype = np.dtype(array.dtype)
    if callable(array.fill):
        return np.ascontiguousarray(array.fill(numbers, array.shape, sizes), dtype).reshape(array.shape)
    match array.fill.split(":"):
        case ["zeros"]:
            return np.zeros(array.shape, dtype)
        case ["uniform"]:
            return numbers.random(array.shape).astype(dtype)
        case ["integers", low, high]:
            return numbers.integers(int(low), int(high), array.shape).astype(dtype)
        case ["normal"] if dtype.kind in "fc":
            return numbers.standard_normal(array.shape).astype(dtype)
        case ["normal"]:
            return numbers.integers(-100 if dtype.kind == "i" else 0, 101, array.shape).astype(dtype)
    raise ValueError(f"array `{array.name}`: there is no fill {array.fill!r}")


def poison(array: Array, garbage: np.random.Generator | None = None) -> np.ndarray:
    """An output before the run: bytes that `garbage` draws, or POISON."""
    dtype = np.dtype(array.dtype)
    size = int(np.prod(array.shape, dtype=np.int64))
    if dtype.kind == "b":
        return np.ones(array.shape, dtype) if garbage is None else garbage.integers(0, 2, array.shape, bool)
    drawn = (
        np.full(size * dtype.itemsize, POISON, np.uint8)
        if garbage is None
        else random_bytes(garbage, size * dtype.itemsize)
    )
    return drawn.view(dtype).reshape(array.shape)


def random_bytes(garbage: np.random.Generator, count: int) -> np.ndarray:
    """As many random bytes, uint8."""
    return np.frombuffer(bytearray(garbage.bytes(count)), np.uint8)


def garbage_of(contents: Contents, case: Case) -> np.random.Generator | None:
    """What draws the garbage of a case; None where memory that nobody has written holds POISON."""
    if contents.garbage is None:
        return None
    return np.random.default_rng([contents.garbage, crc32(case.name.encode())])


def seed_of(contents: Contents, case: Case) -> int:
    """The seed of a case. Raises KeyError where there are seeds and none for it: nobody gets a public one by
    chance."""
    return PUBLIC_SEED if contents.seeds is None else contents.seeds[case.name]


def of(answer: Answer, case: Case) -> tuple[Argument, ...]:
    """What the function gets at a case, freshly filled; see `arguments`."""
    garbage = garbage_of(answer.contents, case)
    return arguments(answer.exercise, case, seed_of(answer.contents, case), garbage)


def asked(answer: Answer, case: Case) -> list[tuple[Any, ...]]:
    """What an exercise that asks questions asks at a case; see `questions`."""
    return questions(answer.exercise, case, seed_of(answer.contents, case))


def arguments(
    exercise: Exercise,
    case: Case,
    seed: int = PUBLIC_SEED,
    garbage: np.random.Generator | None = None,
) -> tuple[Argument, ...]:
    """All arguments of an exercise at a case, in order.

    What an artefact is made from goes to the learner's code with its contents: nothing in them leads back to
    the seed of what is held out.
    """
    evidence = exercise.evidence
    assert isinstance(evidence, OnArrays), f"{exercise.name} lists no arguments"
    numbers = generator(exercise, case, _one_way(seed) if evidence.seed_kept_back else seed)
    held_out = generator(exercise, case, seed)
    made = []
    for spec in evidence.arguments(case.sizes):
        if isinstance(spec, Scalar):
            made.append(Argument(spec, np.dtype(spec.dtype).type(spec.value)))
        elif spec.role == "out":
            made.append(Argument(spec, poison(spec, garbage)))
        else:
            source = held_out if spec.role == "held out" else numbers
            made.append(Argument(spec, contents(spec, case.sizes, source)))
    return tuple(made)


def _one_way(seed: int) -> int:
    """Another seed, from which nobody finds the first."""
    return int.from_bytes(sha256(str(seed).encode()).digest()[:8], "little")


def expected(reference: Reference, made: tuple[Argument, ...], case: Case) -> dict[str, np.ndarray]:
    """The reference's results by name. It works on copies, floating-point contents in float64."""
    inputs = {
        a.name: a.value.astype(np.float64) if a.value.dtype.kind == "f" else a.value.copy()
        for a in made
        if a.role in ("in", "inout")
    }
    with np.errstate(all="ignore"):
        results = reference(inputs, case.sizes)
    return {name: np.asarray(values) for name, values in results.items()}


def of_kinds(*names: str, suffix: str = "") -> tuple[Case, ...]:
    """Cases whose questions differ by ``sizes["kind"]``.

    Questions are seeded by the case's name: a judge's own `suffix` gives others.
    """
    return tuple(Case(name + suffix, {"kind": name}) for name in names)


def questions(exercise: Exercise, case: Case, seed: int = PUBLIC_SEED) -> list[tuple[Any, ...]]:
    """The argument tuples of an exercise that asks questions, at a case."""
    assert isinstance(exercise.evidence, OnQuestions), f"{exercise.name} asks no questions"
    return exercise.evidence.questions(case.sizes, generator(exercise, case, seed))
