"""What an exercise is, as data. A lab's module in this package builds `Exercise` records and nothing else.

The same records serve the learner's `check` and the instructor's judge: the check runs the public `cases`,
the judge its own cases of the same form, on contents that it seeds itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Sizes = Mapping[str, int | float | str]
Fill = str | Callable[[np.random.Generator, tuple[int, ...], Sizes], np.ndarray]
Number = int | float
Face = Literal["cuda", "cupy"]
Placement = Literal["own", "sharded", "replicated"]


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
    takes of an answer (`Exercise.measured`), of a PyTorch program, of a network; `unit` is the unit of such a
    count. `sense` says on which side of `limit`
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
class Exercise:
    """One graded exercise.

    `name` is ``topic.exercise``; the learner calls ``gpulab.check(name, fn)``. The evidence says what
    reaches the judge: ``launch trace`` (fn is a kernel, or host code that launches kernels on device
    arrays), ``answered cases`` (fn is plain Python, called with JSON-able arguments, returning a JSON-
    able answer), ``tensor graph`` (fn computes with PyTorch), ``communication`` (every rank of a small
    world runs fn, which computes with PyTorch and talks through torch.distributed), ``artefact`` (fn makes
    data, such as weights, which are scored on data that it never saw) or ``dialogue`` (fn calls functions
    that it is given, and the judge answers them).

    Launch traces: `arguments(sizes)` lists what fn receives, in order. With `shape(sizes)` fn is a kernel
    that the check launches; without it fn is host code that launches kernels itself. The reference of the
    same name in `gpulab.checks.references` maps (inputs by name, sizes) to the expected outputs by name.

    `face` says how the learner's code came to the device: through numba (``cuda``), where kernels are those
    of ``@cuda.jit``, or through CuPy, where they are RawKernels and arrays are CuPy's.

    Answered cases: `questions(sizes, generator)` lists tuples of arguments; the reference maps (*arguments)
    to the answer. Where many answers are right because the answer is a plan — an order, a schedule — the
    exercise is `measured`: its reference gets (answer, *arguments), carries the plan out, raises WrongAnswer
    with a sentence about what is wrong with it, or returns counts by name, which the budgets limit. A count
    of a case is its worst over the case's questions.

    Tensor graphs: `arguments(sizes)` lists what fn receives and, as ``out`` arrays, what it returns. It may
    use the `operators` on the list (`gpulab.checks.operators`). Budgets limit what
    `gpulab.profile.tensors.COUNTS` names, or ``calls of OPERATOR``.

    Communication: `arguments(sizes)` as for a tensor graph, each with its placement; ``sizes["ranks"]`` is
    how many ranks there are. Sends and receives are allowed, and the collectives in `calls`
    (`gpulab.distributed.collectives.NAMES`). Budgets limit what `gpulab.distributed.traffic.COUNTS` names,
    ``calls of COLLECTIVE``, ``bytes of COLLECTIVE``, or one of the exercise's own `counts`, each of which
    maps (`Traffic`, sizes) to a number. A lower limit (``>=``) counts what carries contents, because empty
    messages are cheap.

    Artefacts: fn gets the ``in`` arrays of `arguments(sizes)` with contents, as NumPy's, and the scalars, and
    returns a dictionary of arrays. The reference gets (those arrays by name, the ``in`` arrays by name, the
    ``held out`` ones by name, sizes), raises WrongAnswer with a sentence or returns counts by name. Budgets
    limit these and ``bytes``, the size of all that was returned.

    Dialogues: fn is plain Python, and among its arguments are functions that the judge answers. The reference
    gets (ask, *arguments of a question), calls fn with ``ask(*given)`` as often as it likes, functions of its
    own among what is given, counts what they are asked, and raises WrongAnswer, or returns counts by name.
    `gpulab.checks.branches` goes through all ways in which draws of fn can come out. `decorator` is the
    line that makes of what the learner writes a function that can be called so, where there is one.

    `rtol`/`atol` are the tolerance against the reference computed in float64; both 0 means exactly equal.
    `by_hand` names functions of gpulab that do what is asked: an answer in plain Python may not call them.
    `varies` names the sizes of which a cohort draws its own (`gpulab.checks.cohort`): no text of the lab
    depends on their exact values. `hints` has three steps; `section` is the heading of the lab to read again
    after the last. In a `detective` exercise the learner looks for the race: the check shows its two lines
    and no cure.
    """

    name: str
    lab: str
    correct_points: float
    cases: tuple[Case, ...]
    evidence: Literal[
        "launch trace", "answered cases", "tensor graph", "communication", "artefact", "dialogue"
    ] = "launch trace"
    arguments: Callable[[Sizes], tuple[Array | Scalar, ...]] | None = None
    shape: Callable[[Sizes], Shape] | None = None
    questions: Callable[[Sizes, np.random.Generator], list[tuple]] | None = None
    budgets: tuple[Budget, ...] = ()
    face: Face = "cuda"
    operators: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    counts: Mapping[str, Callable[[Any, Sizes], float]] = field(default_factory=dict, hash=False)
    rtol: float = 0.0
    atol: float = 0.0
    hints: tuple[str, str, str] = ("", "", "")
    section: str = ""
    race_case: str | None = None  # the small case run under both schedules; the first by default
    detective: bool = False
    measured: bool = False
    decorator: str = ""
    varies: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    tags: tuple[str, ...] = field(default=())

    @property
    def points(self) -> float:
        """All points of the exercise."""
        return self.correct_points + sum(b.points for b in self.budgets)


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
