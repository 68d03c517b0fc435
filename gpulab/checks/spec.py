"""What an exercise is, as data. A lab's module in this package builds `Exercise` records and nothing else.

The same records serve the learner's `check` and the instructor's judge: the check runs the public `cases`,
the judge its own cases of the same form, on contents that it seeds itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from .parts import Part

Sizes = Mapping[str, int | float | str]
Fill = str | Callable[[np.random.Generator, tuple[int, ...], Sizes], np.ndarray]
Number = int | float
Face = Literal["cuda", "cupy"]
Placement = Literal["own", "sharded", "replicated"]

GPU = "A100"  # what counts are taken on everywhere, so that a budget means the same on every machine


class WrongAnswer(Exception):
    """Raised by the reference of a measured exercise: a sentence to the learner about their answer."""


@dataclass(frozen=True)
class Case:
    """One problem size: `sizes` names everything that the arguments' shapes depend on."""

    name: str
    sizes: Sizes


@dataclass(frozen=True)
class Array:
    """A device array that the learner's code gets.

    `role`: ``in`` (must stay unchanged), ``out`` (poisoned before the run), ``inout``, ``held out`` (of an
    artefact: not handed in, its reference scores with it).
    `fill`: ``normal``, ``uniform`` (0…1), ``integers:LOW:HIGH``, ``zeros``, or a function
    (generator, shape, sizes) → array. Ignored for ``out``.

    In a tensor graph, arrays named ``a[0]``, ``a[1]`` … are handed in as one list of tensors (`several` makes
    them), `grad` makes one a leaf that wants a gradient, and an ``out`` array is not handed in: the function
    returns it, or leaves it in ``w.grad`` where that is its name.

    Where several ranks run the function, it gets and returns tensors in the same way, and `placement` says
    which part of the array a rank has: ``own``, an array of this shape, different on each rank; ``sharded``,
    its part of one array of this shape, split along the first axis as by ``torch.tensor_split``;
    ``replicated``, all of one array. The reference sees one array: an ``own`` one has the ranks as another
    axis in front.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    role: Literal["in", "out", "inout", "held out"] = "in"
    fill: Fill = "normal"
    grad: bool = False
    placement: Placement = "own"


@dataclass(frozen=True)
class Scalar:
    """A number passed by value, such as a size or a factor."""

    name: str
    value: Number
    dtype: str = "int64"


def several(name: str, shapes: Sequence[tuple[int, ...]], **more: Any) -> tuple[Array, ...]:
    """The arrays ``name[0]``, ``name[1]`` …, which a tensor program gets as one list; `more` is Array's."""
    return tuple(Array(f"{name}[{i}]", tuple(shape), **more) for i, shape in enumerate(shapes))


def grouped(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Arrays by name, those of `several` as a list under their common name."""
    found: dict[str, Any] = {}
    for name, array in arrays.items():
        group, bracket, _ = name.partition("[")
        if bracket:
            found.setdefault(group, []).append(array)
        else:
            found[name] = array
    return found


@dataclass(frozen=True)
class Shape:
    """The launch shape of a kernel exercise; `shared_bytes` is the dynamic shared memory."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int = 0


EVERY = "every case"  # as a budget's case


@dataclass(frozen=True)
class Budget:
    """A limit on a count, taken from the report of one case (`case`; the last public one by default), or of
    each: with ``case=EVERY`` the case with the smallest share of the points decides.

    `metric` is a name of `gpulab.profile.METRICS`, or of another count: one that the exercise's own reference
    takes of an answer (`AnsweredCases.measured`), of a PyTorch program, of a network; `unit` is the unit of
    such a count. `sense` says on which side of `limit`
    a good answer lies. `naive` is what the obvious solution costs: at or beyond it no points, between it and
    `limit` a share of them in proportion (on a logarithmic scale). `bound` is what no solution can go beyond:
    a leaderboard ranks by it, no points hang on it. `label` is the name in the check's output,
    `why` the half line in parentheses behind the limit, `advice` the question asked when the budget is
    missed; ``{times}`` in it stands for the measured value over the limit.
    """

    metric: str
    limit: Number | Callable[[Sizes], Number]
    points: float
    label: str
    naive: Number | Callable[[Sizes], Number] | None = None
    sense: Literal["<=", ">=", "=="] = "<="
    why: str = ""
    advice: str = ""
    case: str | None = None
    unit: str = ""
    bound: Number | Callable[[Sizes], Number] | None = None

    def limit_for(self, sizes: Sizes) -> float:
        return float(self.limit(sizes) if callable(self.limit) else self.limit)

    def naive_for(self, sizes: Sizes) -> float | None:
        value = self.naive(sizes) if callable(self.naive) else self.naive
        return None if value is None else float(value)

    def bound_for(self, sizes: Sizes) -> float | None:
        value = self.bound(sizes) if callable(self.bound) else self.bound
        return None if value is None else float(value)


@dataclass(frozen=True)
class Contents:
    """What the arrays and questions of cases are filled with.

    `seeds` are by the name of the case; None is the public seed, that of the learner's check, for every case.
    With `garbage`, a seed, memory that nobody has written holds random bytes, others for each array, launch
    and block; None is 0xFF everywhere: NaN as a float, -1 as an integer.

    Example: ``Contents({"n = 1": 7})`` are the contents of a judge that drew 7 for the case n = 1.
    """

    seeds: Mapping[str, int] | None = None
    garbage: int | None = None


PUBLIC = Contents()


class Evidence:
    """What reaches the judge of an exercise. Each kind is a subclass, listed in `gpulab.checks.evidence`.

    A subclass is a frozen dataclass whose fields are its own part of the specification. In a notebook
    `examine` finds the parts of a verdict. For the judge, `step` says what the sandbox is given at a case,
    `record` writes down there what the function did, `read` takes that back with suspicion, and `replay`
    finds the parts of a verdict from it, on contents that were not in the sandbox. Of a `live` kind nothing
    is recorded: `serving` answers in the sandbox while the judge asks, and `replay` gets how that went.
    """

    kind: ClassVar[str]  # its name: in jobs for the sandbox, and in messages
    line: ClassVar[str] = ""  # how the lines that `record` writes begin
    case_word: ClassVar[str] = "size"  # what a learner calls a case: a size, or a set of questions
    launches: ClassVar[bool] = False  # kernels, which run on the simulated device
    live: ClassVar[bool] = False

    def problem(self, exercise: Exercise, fn: Any) -> str:
        """Why `fn` cannot be examined at all, as a sentence; empty if it can."""
        return ""

    def examine(self, answer: Answer) -> tuple[Part, ...]:
        """The parts of a verdict on a function that is there. Records nothing."""
        raise NotImplementedError

    def counted_with(self) -> str:
        """What counts depend on beside the compiler, such as a version of PyTorch; empty for nothing."""
        return ""

    def needed_cases(self, exercise: Exercise) -> tuple[Case, ...]:
        """The public cases that a judge with cases of its own cannot do without."""
        return ()

    def at_cases(self, names: Mapping[str, str]) -> Evidence:
        """The same where cases have other names: `names` has the new name of each that is still there."""
        return self

    def step(self, exercise: Exercise, case: Case, seed: int) -> dict[str, Any]:
        """One case as the sandbox gets it, fit for JSON; nothing in it leads to what is kept back."""
        raise NotImplementedError

    @staticmethod
    def record(function: Any, record: Any, exercise: str, case: dict[str, Any]) -> None:
        """Inside the sandbox: call the function at a case, write down what it did with `record.line`."""
        raise NotImplementedError

    @staticmethod
    def read(facts: Mapping[str, Any], kernels: Mapping[str, Any]) -> Any:
        """What a line of the record says. Raises ValueError, KeyError or TypeError for one that is odd."""
        raise NotImplementedError

    @staticmethod
    def prepare() -> None:
        """Do once, before anything is replayed, what takes long."""

    @staticmethod
    def serving(connection: Any) -> Callable[[Any, str], None]:
        """Inside the sandbox of a live kind: serves a function under the name of its exercise."""
        raise NotImplementedError

    def replay(self, answer: Answer, recorded: Mapping[str, Any]) -> tuple[Part, ...]:
        """The parts of a verdict on what was recorded, by case; `answer.fn` gives the function's name."""
        raise NotImplementedError


@dataclass(frozen=True)
class OnArrays(Evidence):
    """Evidence on arrays: `arguments(sizes)` lists what the function receives, in order."""

    arguments: Callable[[Sizes], tuple[Array | Scalar, ...]]
    seed_kept_back: ClassVar[bool] = False  # whether the sandbox sees contents and must not learn the seed


@dataclass(frozen=True)
class OnQuestions(Evidence):
    """Evidence on questions: `questions(sizes, generator)` lists tuples of arguments."""

    questions: Callable[[Sizes, np.random.Generator], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Exercise:
    """One graded exercise.

    `name` is ``topic.exercise``; the learner calls ``gpulab.check(name, fn)``. The `evidence` says what
    reaches the judge, and holds what only exercises of its kind specify. The reference of the same name, in
    the folder ``references`` beside the lab's module, works out what is right.

    `rtol`/`atol` are the tolerance against the reference computed in float64; both 0 means exactly equal.
    `varies` names the sizes of which a cohort draws its own (`gpulab.checks.cohort`): no text of the lab
    depends on their exact values. `hints` has three steps; `section` is the heading of the lab to read again
    after the last. In a `detective` exercise the learner looks for what is wrong: of a race the check shows
    the two lines and no cure. `gpu` names the simulated GPU that its kernels are compiled for, run on and
    counted on, whichever GPU the learner has chosen.
    """

    name: str
    lab: str
    correct_points: float
    cases: tuple[Case, ...]
    evidence: Evidence
    budgets: tuple[Budget, ...] = ()
    rtol: float = 0.0
    atol: float = 0.0
    hints: tuple[str, str, str] = ("", "", "")
    section: str = ""
    detective: bool = False
    gpu: str = GPU
    varies: tuple[str, ...] = ()
    tags: tuple[str, ...] = field(default=())

    @property
    def points(self) -> float:
        """All points of the exercise."""
        return self.correct_points + sum(b.points for b in self.budgets)


@dataclass(frozen=True)
class Answer:
    """A function, the exercise that it answers, the reference to compare with, and what the cases hold.

    A check takes the learner's function and the public contents. The judge has contents of its own, and a
    function that knows no more than its name.
    """

    exercise: Exercise
    fn: Any
    reference: Callable[..., Any]
    contents: Contents = PUBLIC


@dataclass(frozen=True)
class Prediction:
    """A question of a lab's predict step: the learner writes a number down before the run. Ungraded.

    `name` is ``topic.key``; `question` ends in what the number counts and `unit` names it. `answer` is the
    right number, compared within `tolerance` (relative); None when only the learner's own run can tell:
    then the lab passes the run's number to `gpulab.predict(name, measured=…)`. `reason` is shown when the
    number is off.
    """

    name: str
    lab: str
    question: str
    unit: str = ""
    answer: Number | None = None
    tolerance: float = 0.0
    reason: str = ""
