"""Examines exercises that launch kernels: right at every size, right in any order of warps, what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpulab.analysis.profile import METRICS, Report
from gpulab.analysis.profile.onto_simulator import onto_simulator
from gpulab.analysis.profile.report import Line
from gpulab.analysis.profile.watch import Watch
from gpulab.checks import budgets, diagnose, launching, messages, orders, patterns, pictures, sanitized
from gpulab.checks.compare import Mismatch
from gpulab.checks.every_case import walk
from gpulab.checks.launched import Launched
from gpulab.checks.need import is_empty
from gpulab.checks.parts import Detail, Part, Unwritten
from gpulab.checks.results import changed_input
from gpulab.checks.run import Outcome, name_of, reference_device
from gpulab.checks.scoring import Score
from gpulab.checks.slips import array_slip_of
from gpulab.checks.spec import Answer, Budget, Case, Exercise, Face, OnArrays, Shape, Sizes
from gpulab.checks.verdict import no_points
from gpulab.simulator import device as devices
from gpulab.simulator.observe.recorder import Index, Recorder, Request
from gpulab.simulator.observe.writers import Writers

from .arrays import without_contents
from .launch_recorder import trace_case
from .launch_records import CaseTrace, read_case
from .launch_replay import Recorded, undecided


@dataclass(frozen=True)
class LaunchTrace(OnArrays):
    """The function is a kernel, or host code that launches kernels on device arrays.

    `arguments(sizes)` lists what it receives, in order. With `shape(sizes)` it is a kernel that the check
    launches; without it, host code that launches kernels itself. The reference maps (inputs by name, sizes)
    to the expected outputs by name.

    `face` says how the learner's code comes to the device: through numba (``cuda``), where kernels are those
    of ``@cuda.jit``, or through CuPy (``cupy``), where they are RawKernels and arrays are CuPy's. `race_case`
    is the small case that runs under both schedules; the first by default.
    """

    kind = "launch trace"
    line = "case"
    launches = True

    shape: Callable[[Sizes], Shape] | None = None
    face: Face = "cuda"
    race_case: str | None = None

    def problem(self, exercise: Exercise, fn: Any) -> str:
        """A kernel where host code is asked for, or the other way round."""
        kernel, name = launching.is_kernel(fn), name_of(fn)
        if self.shape is not None:
            return "" if kernel else messages.not_a_kernel(name, self.face)
        return messages.a_kernel(name, self.face) if kernel else ""

    def needed_cases(self, exercise: Exercise) -> tuple[Case, ...]:
        """The case that shows races, if one was chosen for that: others may have one step, block or warp."""
        return tuple(case for case in exercise.cases if case.name == self.race_case)

    def at_cases(self, names: Mapping[str, str]) -> LaunchTrace:
        """With the race case under its new name; with the default where it is gone."""
        return replace(self, race_case=names.get(self.race_case) if self.race_case else None)

    def examine(self, answer: Answer) -> tuple[Part, ...]:
        """All parts, on the simulator, whatever the learner's device is."""
        with reference_device(answer.exercise.gpu):
            return examine(self.simulated(answer))

    def simulated(self, answer: Answer) -> Launched:
        """`launched`, with the kernel on the simulator, whatever the learner's device is."""
        if devices.uses_gpu():
            answer = replace(answer, fn=onto_simulator(answer.fn))
        return self.launched(answer)

    def launched(self, answer: Answer) -> Launched:
        """The answer with what this exercise says of launches."""
        return Launched(
            answer.exercise, answer.fn, answer.reference, answer.contents,
            self.shape, self.face, self.race_case,
        )  # fmt: skip

    def step(self, exercise: Exercise, case: Case, seed: int) -> dict[str, Any]:
        """Shapes and types of the arguments, and how to launch; the sandbox needs no contents."""
        step = {
            "name": case.name,
            "arguments": without_contents(self, case),
            "face": self.face,
            "gpu": exercise.gpu,
        }
        if self.shape is None:
            return step
        shape = self.shape(case.sizes)
        return step | {"launch": [shape.grid, shape.block, shape.shared_bytes]}

    @staticmethod
    def record(function: Any, record: Any, exercise: str, case: dict[str, Any]) -> None:
        """Call the function on handles of the case's arrays and write its launches down. Raises Refused."""
        trace_case(function, record, exercise, case)

    @staticmethod
    def read(facts: Mapping[str, Any], kernels: Mapping[str, Any]) -> CaseTrace:
        """The launches, of kernels that are in the record."""
        return read_case(facts, kernels)

    def replay(self, answer: Answer, recorded: Mapping[str, CaseTrace]) -> tuple[Part, ...]:
        """As `examine`, on the recorded launches over garbage, and again over 0xFF. Raises Refused, Broken.

        The costs are those over garbage that nobody knows, so that nobody saves work by knowing it. What is
        wrong there is told as it shows over 0xFF, where what nobody wrote is NaN; what is wrong in one of the
        two replays alone is undecided.
        """
        garbage = Recorded(**vars(self.launched(answer)), recorded=recorded)
        plain = replace(garbage, contents=replace(answer.contents, garbage=None))
        with reference_device(answer.exercise.gpu):
            parts = examine(garbage)
            if parts[0].state == "pass":
                why = undecided(plain)
            else:
                told = examine(plain)
                if told[0].state != "pass":
                    return told
                why = undecided(garbage) or parts[0].details[0].text
        return no_points(answer.exercise, "", (Detail(why),)) if why else parts


def launch_trace_of(exercise: Exercise) -> LaunchTrace:
    """The evidence of an exercise that launches kernels. Raises TypeError for another exercise."""
    if not isinstance(exercise.evidence, LaunchTrace):
        raise TypeError(f"{exercise.name} launches no kernels")
    return exercise.evidence


def examine(answer: Launched) -> tuple[Part, ...]:
    """All parts: right at every size and under another schedule, then the budgets in order."""
    exercise = answer.exercise
    reports: dict[str, Report] = {}
    counted = {case.name for budget in exercise.budgets for case in budgets.cases_of(exercise, budget)}
    found = walk(
        exercise,
        lambda case: _at(answer, case, reports if case.name in counted else None),
    )
    if found.first is not None:
        details, nothing_done = found.first.explain(answer)
        # An empty array is right without any work: not worth a mention.
        return no_points(exercise, messages.no_result() if nothing_done else found.summary(), details)
    race, remarks = orders.examine(answer)
    if race:
        return no_points(exercise, messages.right_by_luck(len(exercise.cases)), race)
    of = exercise.correct_points
    first = Part("right", "pass", of, of, messages.all_right([c.name for c in exercise.cases]), remarks)
    return (first, *_budgets(answer, reports))


# ---------------------------------------------------------------- right?


@dataclass(frozen=True)
class _Failure:
    """What is wrong at one case: `trouble` in words, or an input that changed, or a wrong output."""

    case: Case
    outcome: Outcome
    changed: str = ""
    wrong: Mismatch | None = None

    @property
    def stopped(self) -> bool:
        return bool(self.outcome.trouble)

    def explain(self, answer: Launched) -> tuple[tuple[Detail, ...], bool]:
        """Sentences, and whether nothing was done at all.

        The case runs once more, with an observer that notes which thread writes what.
        """
        if self.stopped:
            trouble = self.outcome.trouble
            drawn = pictures.of_fault(self.outcome.fault, self.case)
            return (*trouble, *drawn), isinstance(trouble[0], Unwritten)
        writers = Writers()
        again = answer.run(self.case, writers=writers)
        before = again.before
        watcher = None if again.trouble else writers
        if self.changed:
            old = next(a.value for a in before if a.name == self.changed)
            now = self.outcome.after[self.changed]
            return diagnose.changed_input(self.changed, old, now, watcher), False
        assert self.wrong is not None
        if self.outcome.launches == 0:
            return (Detail(messages.no_launch(answer.name)),), True
        outputs = [a.name for a in before if a.role in ("out", "inout")]
        given = answer.shape is not None
        if watcher and (said := diagnose.without_output(watcher, outputs, answer.name, given)):
            nothing = not any(launch.stores for launch in watcher.launches)
            unwritten = given and nothing and is_empty(answer.fn)
            return (Unwritten(said) if unwritten else Detail(said),), nothing
        source = diagnose.unwritten(answer, self.case, self.wrong)
        first, *rest = diagnose.wrong_result(self.wrong, watcher, given, source)
        slip = array_slip_of(answer.reference, self.wrong, before, self.case)
        wrong = (first, *([Detail(slip)] if slip else []), *rest)
        watch = pictures.watch_writer(self.wrong, watcher, self.case)
        picture = pictures.detail(self.wrong, watcher)
        return (*wrong, *sanitized.findings(answer, self.case), picture, *watch), False


def _at(answer: Launched, case: Case, reports: dict[str, Report] | None) -> _Failure | None:
    """Run one case and compare. Where `reports` is given the launches are counted into it."""
    watch = Watch(devices.current())
    outcome = answer.run(case, watch.standing() if reports is not None else None)
    if outcome.trouble:
        return _Failure(case, outcome)
    if changed := changed_input(outcome):
        return _Failure(case, outcome, changed=changed)
    if wrong := answer.first_mismatch(case, outcome):
        return _Failure(case, outcome, wrong=wrong)
    if reports is not None and watch.launches:
        reports[case.name] = _to_be_counted(answer.exercise, watch.report(answer.name))
    return None


def _to_be_counted(exercise: Exercise, report: Report) -> Report:
    """The report that budgets are held against.

    An atomic loads and stores, and counts as both, or one that exchanges would store for nothing. Where an
    exercise wants atomics a budget limits them, and loads and stores are those of other instructions. Where
    few loads from shared memory are allowed, shuffles count as such loads, and where barriers are limited,
    those of a cluster count, too.
    """
    limited = {budget.metric for budget in exercise.budgets}
    launches = report.launches
    if "global_atomics" not in limited:
        launches = tuple(
            replace(each, tally=each.tally.with_atomics_as_accesses(), most_loaded=each.most_asked)
            for each in launches
        )
    few = {budget.metric for budget in exercise.budgets if budget.sense == "<="}
    if few & {"shared_load_bytes", "shared_load_requests"}:
        launches = tuple(replace(each, tally=each.tally.with_shuffles_as_shared_loads()) for each in launches)
    if "barriers" in limited:
        launches = tuple(
            replace(each, tally=each.tally.with_cluster_barriers_as_barriers()) for each in launches
        )
    return replace(report, launches=launches)


# ---------------------------------------------------------------- what does it cost?

SMALL = 0.05  # of a count: so much too much may be any line's


def _budgets(answer: Launched, reports: dict[str, Report]) -> tuple[Part, ...]:
    def value(budget: Budget, case: Case) -> float | None:
        report = reports.get(case.name)
        return report[budget.metric] if report else None

    def advice(budget: Budget, case: Case, got: Score) -> tuple[Detail, ...]:
        return _advice(answer, case, budget, got, reports[case.name])

    return budgets.parts(answer.exercise, value, advice)


def _advice(answer: Launched, case: Case, budget: Budget, got: Score, report: Report) -> tuple[Detail, ...]:
    """The line that costs most, how its threads lie in memory, and the question that leads on."""
    details: list[Detail] = []
    cause = METRICS[budget.metric].cause
    line = _blamed(report, budget.metric, cause.name, (got.value or 0) - got.limit) if cause else None
    sentences = []
    if cause and line and line.text:
        details.append(Detail(line.text, line.line))
        if line.share(cause.name) < 0.95:
            sentences.append(messages.share_of_line(100 * line.share(cause.name)) + ".")
        accesses = {(term.kind, term.space) for term in cause.terms if term.space is not None}
        alike = cause.terms[0].column == "requests"  # each costs the same
        bytes_only = cause.terms[0].column == "bytes"  # where they lie costs none
        seen = [] if not accesses else _more_recorded(answer, case) if alike else _recorded(report)
        if said := _pattern(seen, line.line, accesses, alike, bytes_only):
            sentences.append((said[:1].upper() + said[1:] if sentences else said) + ".")
    sentences.append(budgets.question(budget, got))
    details += [Detail(" ".join(s for s in sentences if s))] if any(sentences) else []
    return tuple(details)


def _blamed(report: Report, metric: str, cause: str, excess: float) -> Line | None:
    """The line to look at: the costliest, or None where the excess is so small that it may be any line's.

    Requests tell more: it is the line that moves fewest bytes with each, among those that have enough of them
    to cause the whole excess.
    """
    moved = cause.replace("requests", "bytes")
    able = [line for line in report.lines if (line.metrics[cause] or 0) >= max(excess, 1)]
    if metric == cause != moved and moved in METRICS and able:
        return min(able, key=lambda line: (line.metrics[moved] or 0) / (line.metrics[cause] or 1))
    line = report.lines.costliest(cause)
    small = metric == cause and len(able) > 1 and 0 < excess < SMALL * (report[cause] or 0)
    return None if small else line


Seen = tuple[Request, Index]  # and the shape of its block


def _recorded(report: Report) -> list[Seen]:
    """The first two requests of each instruction, from the run that was counted."""
    return [(request, launch.block) for launch in report.launches for request in launch.recording.requests]


def _more_recorded(answer: Launched, case: Case) -> list[Seen]:
    """The first 32 of each, from one more run."""
    recorders: list[Recorder] = []

    def record(launch: devices.Launch) -> Recorder:
        recorders.append(Recorder(limit=32, arrays=launch.arrays))
        return recorders[-1]

    answer.run(case, devices.current().observed(record))
    return [(request, recorder.block) for recorder in recorders for request in recorder.requests]


def _pattern(
    seen: Iterable[Seen],
    line: int,
    accesses: set[tuple[str | None, str]],
    alike: bool,
    bytes_only: bool,
) -> str:
    """What the costliest request of a source line looks like, or a typical one where all cost alike.

    Empty if there is nothing to say, as of numbers side by side where only their bytes count.
    """
    fitting = [
        (request, block)
        for request, block in seen
        if request.line == line
        and any(s == request.space and k in (None, _kind(request.kind)) for k, s in accesses)
    ]
    choose = patterns.typical if alike else patterns.worst
    found = choose(request for request, _ in fitting)
    if found is None or (bytes_only and patterns.side_by_side(found)):
        return ""
    return patterns.describe(found, next(block for request, block in fitting if request is found))


def _kind(kind: str) -> str:
    """The kind as the counts call it."""
    return "atomic" if kind == "reduction" else kind
