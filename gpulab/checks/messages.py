"""Every sentence that a check, a hint or a prediction says to a learner.

Functions of facts; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.analysis.profile.metrics import METRICS
from gpulab.foundation.display import number, points, together

from .scoring import met
from .spec import Budget

ROOM = 40  # characters for the names of cases
AVERAGES = {"sectors/request": "per request", "ways": "ways on average"}  # units in words


def some(count: int, one: str, many: str = "") -> str:
    """``1 element``, ``33 elements``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def a(noun: str) -> str:
    """``a list``, ``an int``."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def listed(names: Sequence[str], word: str = "or") -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


# ---------------------------------------------------------------- names


def unknown_exercise(name: object, close: Sequence[str]) -> str:
    if close:
        return f"there is no exercise {name!r}; did you mean {listed(close)}?"
    return f"there is no exercise {name!r}; the check's own cell names it, as in basics.saxpy"


def no_exercise_name(given: object) -> str:
    return (
        'the first argument is the name of an exercise, as in gpulab.check("basics.saxpy", saxpy); '
        f"it got {a(type(given).__name__)}"
    )


def no_reference(name: str) -> str:
    return f"the expected results of {name} are not installed here, so it cannot be checked"


def unknown_lab(lab: object, close: Sequence[str]) -> str:
    hint = f"; there are {listed(close, 'and')}" if close else ""
    return f"there is no lab {lab!r}{hint}"


# ---------------------------------------------------------------- what was handed in


def not_a_function(exercise: str, what: str) -> str:
    return f'`gpulab.check("{exercise}", …)` takes your function itself; it got {what}'


def launched_already(exercise: str) -> str:
    return (
        f'pass the kernel without its launch shape: `gpulab.check("{exercise}", kernel)`. '
        "The check chooses the shapes."
    )


def not_a_kernel(name: str, face: str = "cuda") -> str:
    cure = f"put `@cuda.jit` in the line above `def {name}`"
    if face == "cupy":
        cure = f'`{name} = cp.RawKernel(source, "{name}")`'
    return f"`{name}` is plain Python. This exercise asks for a kernel: {cure}"


def a_kernel(name: str, face: str = "cuda") -> str:
    cure = "leave out `@cuda.jit` here" if face == "cuda" else f"write `def {name}(…)`"
    return f"`{name}` is a kernel. This exercise asks for plain Python that launches kernels: {cure}"


def a_kernel_for_answers(name: str) -> str:
    return f"`{name}` is a kernel. This exercise asks for plain Python: leave out `@cuda.jit`"


def no_result() -> str:
    return "no result yet"


def not_written(name: str) -> str:
    return f"`{name}` is still empty: no thread writes anything"


def writes_nothing(kernels: Sequence[str]) -> str:
    names = listed([f"`{kernel}`" for kernel in kernels], "and")
    who = f"the kernel {names} runs and writes" if len(kernels) == 1 else f"the kernels {names} run and write"
    return f"{who} nothing: is its body still empty, or is nothing assigned to its output?"


def output_unused(outputs: Sequence[str], launches: int) -> str:
    who = "a kernel ran" if launches == 1 else f"{launches:,} kernels ran"
    names = listed([f"`{name}`" for name in outputs])
    return f"{who}, but {names} was never written. Is it passed to a kernel as its output?"


def empty(name: str) -> str:
    return f"`{name}` is still empty"


def write_first(name: str) -> str:
    return f"write `{name}` first, then run this cell again"


def no_launch(name: str) -> str:
    return f"`{name}` launched no kernel"


def returns_nothing(name: str) -> str:
    return f"`{name}` returns nothing yet: is a `return` missing?"


def no_such_key(key: object) -> str:
    return f"the dictionary has no key {key!r}"


def raised(kind: str, text: str, line: int) -> str:
    where = f" in line {line}" if line else ""
    return f"{kind}{where}: {text}" if text else f"{kind}{where}"


def other_parameters(text: str) -> str:
    return f"{text.rpartition('<locals>.')[2]}: its parameters are not those that the exercise gives"


def no_decorator(name: str, decorator: str) -> str:
    return f"the line `{decorator}` is missing above `def {name}`: it lets the check ask your policy"


def ours(kind: str, text: str) -> str:
    return (
        f"something inside gpulab broke, not your code ({kind}: {text}). "
        "Please report it with this exercise's name"
    )


def read_on_host(array: str) -> str:
    return (
        f"your code reads `{array}` on the host. The judge hands out arrays without contents there: "
        "leave the data on the device and let kernels do the work"
    )


def array_of_yours() -> str:
    return "an array of yours"


def input_written_on_host(array: str) -> str:
    return f"your code writes to the input `{array}` from the host; inputs stay as they are"


def written_between_launches(array: str) -> str:
    return (
        f"your code writes to `{array}` from the host between launches; "
        "let kernels do the work, or write before the first launch that uses it"
    )


def too_many_uploads(size: int, limit: int) -> str:
    return (
        f"your code uploads {size:,} bytes from the host; "
        f"at most {limit:,} are allowed, so a kernel must compute it"
    )


def too_many_constants(kernel: str, size: int, limit: int) -> str:
    return (
        f"`{kernel}` brings {size:,} bytes of constants; "
        f"at most {limit:,} are allowed, so a kernel must compute it"
    )


def too_many_launches(limit: int) -> str:
    return f"your code launches more than {limit:,} kernels; let each of them do more of the work"


# ---------------------------------------------------------------- cells that are run for the judge


def cell_stopped(seconds: float) -> str:
    return f"stopped after {seconds:.2g} s; what it defines below was still defined"


def import_left_out(name: str) -> str:
    return f"`{name}` cannot be imported where answers are judged, so your cell was run without it"


def magic_left_out(line: str) -> str:
    return f"`{line}` cannot be run where answers are judged, so your cell was run without it"


def judge_will_not_read(name: str) -> str:
    return (
        f"the judge will not know `{name}`: of the cells that you added it reads only definitions "
        f"(functions, classes, imports, assignments). Define `{name}` in the cell of the answer"
    )


def answered_elsewhere(name: str) -> str:
    return (
        f"the `{name}` that was checked is in a cell that you added, and the judge takes the one in the "
        "lab's cell. Copy your answer there"
    )


def absent_here(name: str) -> str:
    return f"`{name}` is needed, but it cannot be imported where answers are judged; use what the lab imports"


# ---------------------------------------------------------------- right or wrong


def points_of(got: float, of: float) -> str:
    return f"{points(got)} of {points(of)} {'point' if of == 1 else 'points'}"


def not_checked() -> str:
    return "not run yet"


def all_right(cases: Sequence[str], what: str = "size") -> str:
    return f"{len(cases)} of {some(len(cases), what)} ({_range(cases)})"


def _range(cases: Sequence[str]) -> str:
    """All names where they fit, else the first and the last."""
    names = ", ".join(cases)
    return names if len(names) <= ROOM else f"{cases[0]} … {cases[-1]}"


def _where(case: str, what: str) -> str:
    """A size reads on, as in "at 1,025"; the name of a set may be words of any kind: "not all fits"."""
    return f" at {case}" if what == "size" else f": {case}"


def first_wrong(right: int, total: int, case: str, what: str = "size") -> str:
    return f"{right} of {some(total, what)}; first wrong{_where(case, what)}"


def stopped_at(right: int, total: int, case: str, what: str = "size") -> str:
    return f"{right} of {some(total, what)}; stopped{_where(case, what)}"


def element(where: str, got: str, expected: str, unwritten: bool) -> str:
    state = "was never written" if unwritten else f"is {got}"
    return f"`{where}` {state}, should be {expected}"


def relative_error(error: float, allowed: float) -> str:
    return f"relative error {error:.1e}, at most {allowed:.1e}"


def more_elements(count: int, where: str) -> str:
    return f"{count:,} more{', ' + where if where else ''}"


def right_outputs(names: Sequence[str]) -> str:
    listed = " and ".join(f"`{name}`" for name in names)
    return f"{listed} {'are' if len(names) > 1 else 'is'} right"


def written_by(thread: str, line: int) -> str:
    return f"{thread} wrote it" + (f" in line {line}" if line else "")


def watch(threads: Sequence[str]) -> str:
    return f"`gpulab.watch()` steps through {' and '.join(threads)}"


def nothing_to_watch() -> str:
    return (
        "watch: there is no thread to watch. It steps through the thread at which the last check of this "
        "notebook failed, and the last check found no such thread. gpulab.trace(kernel[grid, block], …, "
        "threads=[0, 33]) steps through any kernel."
    )


def nobody_wrote(many: bool, why: str) -> str:
    return f"no thread wrote {'them' if many else 'it'}" + (f": {why}" if why else "")


def guarded_away() -> str:
    return "the launch has threads enough. Does an index or a guard leave them out?"


def grid_covers(covered: int, total: int, what: str) -> str:
    return f"the grid covers {covered:,} of {some(total, what)}"


def grid_has(threads: int, elements: int) -> str:
    return f"the launch has {some(threads, 'thread')} for {some(elements, 'element')}"


def input_changed(array: str, count: int, where: str, thread: str, line: int) -> str:
    who = f": {thread} wrote to it" + (f" in line {line}" if line else "") if thread else ""
    what = f"{some(count, 'element')} of the input `{array}` (first `{where}`)"
    return f"your code changed {what}{who}. Only outputs may change."


def read_before_written(what: str, thread: str, line: int) -> str:
    return f"{thread} read {what} in line {line} before any thread had written it"


def or_everything() -> str:
    return "Or does each thread go through everything? Then every thread does the work of all."


def not_a_number_inside(kind: str) -> str:
    return {
        "nan": "NaN comes from 0/0, inf − inf or from reading what nobody wrote",
        "inf": "infinity comes from a division by zero or from a number too large for the type",
    }[kind]


def wrong_answer(call: str, got: str, expected: str) -> str:
    return f"`{call}` gives {got}, should be {expected}"


def and_differs_at(said: str, place: Sequence[int], got: str, expected: str) -> str:
    """``… . First difference: place [1][3] of the answer is 0.5, should be 0.0``."""
    where = "".join(f"[{index}]" for index in place)
    return f"{said}. First difference: `answer{where}` is {got}, should be {expected}"


def differs_at(call: str, place: Sequence[int], got: str, expected: str) -> str:
    """``In `f(…)`, `answer[1][3]` is 0.5, should be 0.0. All before it is right``."""
    where = "".join(f"[{index}]" for index in place)
    return (
        f"in the answer of `{call}`, `answer{where}` is {got}, should be {expected}. All before it is right"
    )


def question_in_full(call: str) -> str:
    return f"in full: {call}"


def wrong_plan(call: str, got: str, said: str) -> str:
    return f"`{call}` gives {got}: {said}"


def by_hand(function: str) -> str:
    return (
        f"your answer calls `{function}`, which does what this exercise asks for. "
        "Write it yourself, from Python's own means; what it computes is there to compare with"
    )


def not_a_plan() -> str:
    return "that is not of the form that is asked for"


def nan_in_a_plan() -> str:
    return "it holds nan, which is no number: did a division by 0 or a difference of infinities make it?"


def more_answers(count: int, total: int) -> str:
    return f"{count:,} more of {some(total, 'question')} of this set {'fails' if count == 1 else 'fail'}"


def odd_answer(call: str, kind: str) -> str:
    return f"`{call}` returns {a(kind)}; return numbers, text, lists or dictionaries"


def no_end(seconds: float, line: int) -> str:
    where = f" in line {line}" if line else ""
    return f"it had not ended after {seconds:g} s of computing and was stopped{where}"


def which_loop() -> str:
    return "Is this inside a loop? Then does each round change what the loop's condition looks at?"


def while_answering(call: str) -> str:
    return f"`{call}` stopped:"


def no_artefact(kind: str) -> str:
    return f"your function returns {kind}; it should return a dictionary of arrays by name"


def artefact_name(name: str, longest: int) -> str:
    return f"{name} names an array of what you return; a name is a text of 1 to {longest} characters"


def artefact_type(name: str, kind: str) -> str:
    return (
        f"`{name}` is {a(kind)}, which cannot be handed in; return arrays of integers, of truth values, "
        "or of float16, float32 or float64"
    )


def artefact_too_many(count: int, most: int) -> str:
    return f"your function returns {count:,} arrays; at most {most} may be handed in"


def artefact_too_large(size: int, most: int) -> str:
    return f"your function returns {size:,} bytes; at most {most:,} may be handed in"


def artefact_not_finite(name: str) -> str:
    return f"`{name}` holds NaN or infinity"


def artefact_unreadable(what: str, why: str) -> str:
    what = what or "no array"
    return f"what your function returns cannot be read as the exercise describes it: {what} ({why})"


def artefact_count(name: str) -> str:
    return f"used on data that your function never saw, what it returns gives no finite number for: {name}"


def odd_result(kind: str) -> str:
    return f"your function returns {a(kind)}; return numbers, text, lists or dictionaries"


def odd_call(function: str, kind: str) -> str:
    return f"`{function}` takes numbers, text, lists and dictionaries; it got {a(kind)}"


def odd_form(function: str, arguments: str) -> str:
    return f"it calls `{function}({arguments})`, which is not the form that is described above"


def gives_none() -> str:
    return "it gives None: is a `return` missing?"


def in_dialogue(call: str, said: str) -> str:
    return f"`{call}`: {said}"


def too_many_calls(most: int) -> str:
    return f"it calls the given functions more than {most:,} times: does a loop end?"


def no_answer(seconds: float) -> str:
    return f"no answer after {seconds:.0f} s"


def ended_in_dialogue() -> str:
    return "the process ended before it had answered"


def forged_dialogue() -> str:
    return "what the process says has not the form of calls and answers"


def not_probabilities(why: str) -> str:
    return f"`choose` draws an index with the given probabilities, and these are none: {why}"


def other_draws() -> str:
    return (
        "asked again, with the same results of the draws before, it draws from other probabilities. All "
        "chance must come from `choose`, and nothing may be kept from one call to the next"
    )


def too_many_ways(most: int) -> str:
    return f"its draws can come out in more than {most:,} ways: is more drawn than needed?"


def other_probability(what: str, got: float, expected: float) -> str:
    return f"{what} with probability {got:.6f}, should be {expected:.6f}"


def order_matters(case: str, where: str, right: str, other: str) -> str:
    return (
        f"At {case} `{where}` is {right} when all warps step together, "
        f"and {other} when they run one after the other. Which threads must wait for which?"
    )


def trouble_in_other_order(case: str) -> str:
    return f"At {case} it stops when warps run one after the other:"


def also_wrong(where: str, right: str, other: str) -> str:
    return (
        f"Under this schedule the result is right; with warps one after the other "
        f"`{where}` is {other} instead of {right}."
    )


def detective_race() -> str:
    return "Nothing orders these two accesses. Which of them comes first, and which should?"


def barrier_without_some(came: int, threads: int, line: int) -> str:
    return (
        f"Only {came} of {some(threads, 'thread')} of a block came to the barrier in line {line}: the others "
        "had returned. Threads that have returned are not waited for, so nothing hangs and no point is lost. "
        "Guard the work and not the barrier, and it holds when the code behind it grows."
    )


def computes_in_float64(line: int) -> str:
    return (
        f"Line {line} computes in float64, although no argument is float64. That is at most half as fast as "
        "float32 and costs no point. A literal such as 1.0, or an integer times a float32, makes it so: "
        "write float32(1.0)."
    )


def right_by_luck(total: int) -> str:
    return f"{total} of {some(total, 'size')}, but only by the luck of the order in which things happen"


# ---------------------------------------------------------------- budgets


def amount(metric: str, value: float | None, unit: str = "") -> str:
    """A measured value or a limit with the unit of its metric; `unit` is that of an exercise's own count."""
    if value is None:
        return "nothing to count"
    whole = int(value) if float(value).is_integer() else float(value)
    m = METRICS.get(metric)
    if m is None:
        return quantity(whole, unit)
    if not (m.terms or m.fact) or m.unit == "%":
        whole = float(value)
    if m.unit in AVERAGES:
        return f"{number(whole)} {AVERAGES[m.unit]}"
    return quantity(whole, "" if m.unit == "×" else m.unit)


def quantity(value: float | int | None, unit: str) -> str:
    """A number with its unit: ``3 launches``, ``1 launch``."""
    return number(value, _one(unit) if value == 1 and isinstance(value, int) else unit)


def _one(unit: str) -> str:
    """The unit of one: ``launch``, ``pass``, ``request``; ``FLOP``, ``B`` and ``Gbit/s`` as they are."""
    if not (len(unit) > 3 and unit.replace(" ", "").replace("-", "").isalpha() and unit.islower()):
        return unit
    return unit.removesuffix("es") if unit.endswith(("ches", "sses")) else unit.removesuffix("s")


def budget(asked: Budget, value: float | None, limit: float, naive: float | None) -> str:
    word = {"<=": "budget", ">=": "at least", "==": "exactly"}[asked.sense]
    why = f" ({asked.why})" if asked.why else ""
    parts = [
        _told_apart(asked, value, limit),
        f"{word} {number_of(asked.metric, limit, asked.unit)}{why}",
    ]
    if naive is not None:
        parts.append(together(f"naive {number_of(asked.metric, naive, asked.unit)}"))
    return "   ".join(parts)


def _told_apart(asked: Budget, value: float | None, limit: float) -> str:
    """The measured value; one that misses the limit has as many digits as show it."""
    words = amount(asked.metric, value, asked.unit)
    if value is None or met(asked.sense, value, limit):
        return words
    shown, space, unit = words.partition(" ")
    more = range(len(shown.partition(".")[2]) + 1, 16)
    for told in (shown, *(f"{value:,.{digits}f}" for digits in more)):
        if not met(asked.sense, float(told.replace(",", "")), limit):
            return told + space + unit
    return words


def counted_at(case: str) -> str:
    return f"counted at every case; the worst is {case}"


def beyond(excess: float, unit: str) -> str:
    return f"That is {quantity(int(excess) if excess.is_integer() else excess, unit)} more than the budget."


def times(value: float | None, limit: float) -> str:
    """How many limits a value is: ``4``, ``1.5``, ``1,280``."""
    if not value or not limit:
        return "?"
    ratio = value / limit
    return f"{ratio:,.0f}" if ratio >= 1000 else f"{ratio:.3g}"


def number_of(metric: str, value: float, unit: str = "") -> str:
    """A limit without its unit: the measured value beside it has it."""
    unit = METRICS[metric].unit if metric in METRICS else unit
    text = amount(metric, value, unit)
    if unit == "%":
        return text
    return text.removesuffix(f" {AVERAGES.get(unit, unit)}").removesuffix(f" {_one(unit)}")


def not_looked_at(until: str) -> str:
    return f"not looked at until {until}"


def until_right() -> str:
    return "the result is right"


def until_met(label: str) -> str:
    return f"`{label}` has improved"


def share_of_line(percent: float) -> str:
    return f"this line causes {percent:.0f} % of it"


# ---------------------------------------------------------------- PyTorch programs


def no_torch(exercise: str) -> str:
    return f"{exercise} needs PyTorch: `pip install gpulab[torch]`, then restart the kernel"


def name_of_another_cell(name: str) -> str:
    return (
        f"If a cell further up binds `{name}`, it has not run since this kernel started. Run > Run All Above "
        "Selected Cell runs them all. If none does, look at how the name is spelt."
    )


def called_on_no_rank() -> str:
    return (
        "This ran in the notebook itself, which is no rank. Hand over the function and not the result of "
        "a call, as in distributed.run(hello, 4), without parentheses behind its name."
    )


def tensor_without_values(shape: tuple[int, ...], dtype: str) -> str:
    return f"<tensor of shape {shape}, {dtype}: without values, because the check records what is done to it>"


def needs_a_value() -> str:
    return (
        "your code asks for the value of a tensor, as `.item()`, `float()`, `.numpy()`, NumPy's functions "
        "and `if` do. "
        f"{_NO_VALUES}. Let an operator choose: `torch.where`, `clamp`"
    )


def needs_a_place() -> str:
    return (
        "your code asks for the value of a tensor of whole numbers, as `a[k]` does where k is a tensor with "
        f"one number, and as `.item()`, `int()`, `range()` and `if` do. {_NO_VALUES}. To pick by such "
        "numbers, index with a tensor that holds them all: `a[places]` has an element of `a` for each place, "
        "in one step. To choose between values, `torch.where`"
    )


_NO_VALUES = (
    "On a GPU the host would wait here until the device is done, and a graph could not be made of it: there "
    "are shapes and no values while it is recorded"
)


def shape_needs_values(name: str) -> str:
    return (
        f"the shape of what `{name}` gives depends on values, as of `x[mask]` with a mask of True and False: "
        "on a GPU the host would wait for it, and a graph could not be made of it. Where the code knows how "
        "many are wanted, index with their places, whole numbers: `x[scores.topk(count).indices]`. Where it "
        "does not, keep the shape, and choose with `torch.where`"
    )


def where_nan_comes_from() -> str:
    return (
        "nan comes of 0 · inf, inf − inf, 0 / 0 and roots or logarithms of negative numbers. `exp` of a "
        "large number is inf; a probability can round to 0, and its logarithm is −inf"
    )


def operator_not_listed(name: str) -> str:
    return f"the operator `{name}` is not on this exercise's list"


def brings_too_much(size: int, limit: int) -> str:
    return (
        f"your code brings a tensor along that is none of its arguments: {size:,} bytes; at most {limit:,} "
        "are allowed. Take it as an argument, or compute it"
    )


def strange_tensor() -> str:
    return (
        "your code uses a tensor from another call of it. Keep nothing between calls: "
        "arguments in, results out"
    )


def odd_argument(kind: str) -> str:
    return f"an operator gets {a(kind)}, which no recorded graph can hold"


def too_many_operators(most: int) -> str:
    return f"your function asks for more than {most:,} operators at this size: does a loop end?"


def other_results(got: int, names: Sequence[str]) -> str:
    should = f"{some(len(names), 'tensor')}: {', '.join(f'`{n}`' for n in names[:4])}"
    return f"your function returns {some(got, 'tensor')}; it should return {should}"


def changed_input(name: str) -> str:
    return f"your function changed the input `{name}`, which is its caller's: work on a copy"


def no_gradient(name: str) -> str:
    return f"`{name}.grad` is None: no backward pass reached `{name}`"


def no_gradient_on_rank(name: str) -> str:
    return (
        f"`{name}.grad` is None: the loss of this rank did not use `{name}`. Other ranks may have, and every "
        "rank needs the result"
    )


def not_a_tensor(name: str, kind: str) -> str:
    return f"`{name}` should be a tensor; your function returns {a(kind)}"


def tensor_words(shape: tuple[int, ...], dtype: str) -> str:
    return f"{' × '.join(map(str, shape)) or 'a single'} {dtype}"


def other_result(name: str, got: str, should: str) -> str:
    return f"`{name}` is {got}, should be {should}"


def other_inputs() -> str:
    return "what was recorded does not fit the arrays of the exercise"


def operator_failed(name: str, said: str) -> str:
    return f"`{name}` stopped on real data: {said}"


def too_much_memory(size: int, limit: int) -> str:
    return f"the function holds {size:,} bytes at once; at most {limit:,} are allowed"


def reads_unwritten() -> str:
    return "It depends on memory that nobody wrote: what `torch.empty` gives holds anything"


def by_operator(rows: Sequence[tuple[str, int, int]], unit: str) -> str:
    """``mostly `mul` (148 calls, 148 launches), `add_` (…)``."""
    said = [f"`{op}` ({some(calls, 'call')}, {quantity(count, unit)})" for op, calls, count in rows]
    return f"Most of it: {', '.join(said)}." if said else ""


# ---------------------------------------------------------------- programs of several ranks


def on_rank(rank: int, said: str) -> str:
    return f"rank {rank}: {said}"


def cannot_travel(name: str, why: str) -> str:
    return (
        f"`{name}` cannot be copied to the ranks ({why}): what it uses of the notebook must be values, "
        "tensors and functions, not open files, locks or generators"
    )


def wrong_on(ranks: Sequence[int], size: int) -> str:
    if len(ranks) == size:
        return "It is wrong on every rank"
    names = listed([str(rank) for rank in ranks], "and")
    return f"It is wrong on {'rank' if len(ranks) == 1 else 'ranks'} {names} of {size}"


def addends(missing: Sequence[int], twice: Sequence[int]) -> str:
    """What a sum over ranks is made of instead of one addend of each."""

    def of(ranks: Sequence[int]) -> str:
        names = listed([str(rank) for rank in ranks], "and")
        return f"{'addend of rank' if len(ranks) == 1 else 'addends of ranks'} {names}"

    lacks = f"the {of(missing)} {'is' if len(missing) == 1 else 'are'} missing" if missing else ""
    more = f"the {of(twice)} {'counts' if len(twice) == 1 else 'count'} twice" if twice else ""
    return " and ".join(said for said in (lacks, more) if said)


def busiest(rank: int, totals: Sequence[int], links: Sequence[tuple[int, int]], receives: bool) -> str:
    """``Rank 0 sends most: 4,092 B to rank 1, …``; nothing where all do the same."""
    if len(set(totals)) == 1:
        return f"Every rank {'receives' if receives else 'sends'} as much"
    verb, way = ("receives", "from") if receives else ("sends", "to")
    said = ", ".join(f"{size:,} B {way} rank {peer}" for peer, size in links)
    return f"Rank {rank} {verb} most: {said}"


# ---------------------------------------------------------------- address patterns


def same_address(verb: str, space: str) -> str:
    return f"all threads of a warp {verb} one address of {space} memory"


def apart(verb: str, axis: str, distance: int, cost: str) -> str:
    who = f"neighbouring threads ({axis} = 0, 1, 2 …)" if axis else "neighbouring threads"
    return f"{who} {verb} addresses {some(distance, 'byte')} apart: {cost}"


def one_sector_each() -> str:
    return "one 32-byte sector each"


def sectors_for(sectors: int, threads: int) -> str:
    return f"{some(sectors, 'sector')} of 32 bytes for {some(threads, 'thread')}"


def misaligned(distance: int, sectors: int) -> str:
    off = some(distance, "byte")
    return f"{some(sectors, 'sector')}, because the first address lies {off} behind the start of one"


def scattered(verb: str, sectors: int, threads: int) -> str:
    return f"the {some(threads, 'thread')} of a warp {verb} {some(sectors, 'different 32-byte sector')}"


def _way(ways: int) -> str:
    """``a 4-way``, ``an 8-way``: 8, 11 and 18 begin with a vowel."""
    return f"{'an' if ways in (8, 11, 18) else 'a'} {ways}-way"


def one_bank(ways: int, threads: int) -> str:
    if ways == threads:
        return f"{threads} threads share one bank, {_way(ways)} conflict"
    return f"{ways} different words in one bank, {_way(ways)} conflict"


def banks(verb: str, ways: int) -> str:
    return f"a warp's threads {verb} up to {ways} different words of one bank, {_way(ways)} conflict"


# ---------------------------------------------------------------- the foot of a check, hints


def attempt(count: int, name: str, hint_left: bool, hints_shown: int) -> str:
    step = "a next step" if hints_shown else "a first step"
    return f"attempt {count}" + (f' · gpulab.hint("{name}") has {step}' if hint_left else "")


def passed_before() -> str:
    return "You passed this exercise before, and that stays. What is graded is the cell that you hand in."


def passed(count: int, lab: str, done: int, total: int) -> str:
    return f"passed at attempt {count} · lab {lab}, {done} of {total} done"


def part_done(count: int) -> str:
    return f"You have passed all {some(count, 'exercise')} of this notebook."


def part_waits(title: str, file: str, count: int) -> str:
    return f"Next: {title}, with {some(count, 'exercise')} to do. Open {file}."


def last_check(points: str, of: str, failed: str) -> str:
    return f"Your last check: {points} of {of} points. Not right yet: {failed}"


def nothing_to_count(name: str) -> str:
    return f'not counted as an attempt · gpulab.hint("{name}") has a first step'


def prints_left_out(lines: int) -> str:
    return (
        f"the kernel printed {some(lines, 'more line')}, which {'is' if lines == 1 else 'are'} not shown: a "
        "check runs it at several sizes and in several orders. To see all, launch it with a few threads"
    )


def not_counted() -> str:
    return "this check does not count as an attempt"


def not_saved(path: str) -> str:
    return f"progress is kept until this kernel stops: {path} cannot be written"


def interrupted(name: str) -> str:
    return (
        f"the check of {name} was stopped: it does not count as an attempt; run the cell again when you like"
    )


def hint_heading(step: int, total: int) -> str:
    return f"hint {step} of {total}"


def hint_wait() -> str:
    return "The next step comes after another failed check."


def hint_try(name: str) -> str:
    return f'Try it, then check again: gpulab.check("{name}", …)'


def hint_over(section: str) -> str:
    return f"These were all hints. Read again: {section}" if section else "These were all hints."


def no_hints(name: str, section: str) -> str:
    return f"{name} has no hints." + (f" Read again: {section}" if section else "")


# ---------------------------------------------------------------- pictures


def unknown_view(view: str, views: Sequence[str]) -> str:
    return f"there is no view {view!r}; did you mean {listed(list(views))}?"


def cannot_show(kind: str) -> str:
    if kind == "NoneType":
        return (
            "gpulab.show got None: a launch that has run gives nothing back. Pass the kernel with its shape, "
            "and its arguments behind a comma: `gpulab.show(kernel[blocks, threads], a, out)`"
        )
    return (
        "gpulab.show draws a report, a launch with its arguments, or an exercise with your function; "
        f"it got {a(kind)}"
    )


def show_exercise(name: str) -> str:
    return f'gpulab.show("{name}", …) needs your function, and an exercise that launches kernels'


def at_case(case: str) -> str:
    return f"At {case}:"


def no_kind_of_file(name: str) -> str:
    return f"save={name!r} says no kind of file; write .png or .html"


def no_line(line: object) -> str:
    return f"line={line!r} is no line of a source file; give its number, as in line=12"


def not_of_a_report(view: str) -> str:
    return (
        f"a report does not hold what {view!r} draws; pass the kernel with its shape and its arguments: "
        f"`gpulab.show(kernel[blocks, threads], a, out, view={view!r})`"
    )


def nothing_at_line(kernel: str, line: int, view: str, lines: Sequence[int]) -> str:
    what = {
        "accesses": "accesses no global memory",
        "threads": "accesses no global memory",
        "banks": "accesses no shared memory",
        "": "accesses no memory",
    }.get(view, "is not executed")
    those = {"banks": "shared memory is accessed", "lanes": "executed", "divergence": "executed"}
    where = those.get(view, "memory is accessed")
    if not lines:
        return f"line {line} of {kernel} {what}, and no other line does"
    listing = ", ".join(map(str, lines))
    if where == "executed":
        return f"line {line} of {kernel} {what}; executed are lines {listing}"
    return f"line {line} of {kernel} {what}; {where} on line{'s' if len(lines) > 1 else ''} {listing}"


def nothing_to_show(view: str) -> str:
    return f"this run has nothing to draw{f' for {view!r}' if view else ''}"


# ---------------------------------------------------------------- predictions, start


def write_a_number() -> str:
    return "write your number in the place of the three dots"


def noted(value: str) -> str:
    return f"noted: {value}"


def prediction_right(value: str, measured: str) -> str:
    return f"you wrote {value}, and it is {measured}"


def prediction_off(value: str, measured: str) -> str:
    return f"you wrote {value}; it is {measured}"


def not_predicted(measured: str) -> str:
    return f"it is {measured}; you wrote nothing down"


def unknown_prediction(name: object, close: Sequence[str]) -> str:
    hint = f"; did you mean {listed(close)}?" if close else ""
    return f"there is no question {name!r}{hint}"


def not_a_prediction(name: str, value: object) -> str:
    return f"gpulab.predict({name!r}, …) takes one finite number; it got {value!r}"


def recap_heading(lab: str) -> str:
    return f"lab {lab}: what you wrote down, and what came out"


def first_counts(value: str) -> str:
    return f"written down before the run: {value}; that one stays in the recap"


def predictions_right(right: int, total: int) -> str:
    return f"{right} of {total}"


def nothing_predicted(lab: str) -> str:
    return f"Nothing is written down for {lab} yet."


def simulating(gpu: str, gpu_here: bool) -> str:
    article = "an" if gpu[:1] in "AEFHILMNORSX" else "a"  # by the sound of the letter
    return f"simulating {article} {gpu} ({'although a GPU is here' if gpu_here else 'no GPU here'})"


def on_gpu(counted_as: str) -> str:
    return f"running on your GPU, counting as {counted_as}"


def start(version: str, device: str, compiler: str, lab: str, done: int, total: int) -> str:
    parts = [f"gpulab {version}", device, f"compiler {compiler}" if compiler else "no compiler"]
    if lab:
        parts.append(f"lab {lab}, {done} of {total} done")
    return " · ".join(parts)
