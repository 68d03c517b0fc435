"""Lab 01: the expected results, and what carries out the answers that are plans."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_01_neural_networks.exercises import NUMBERS

Counts = dict[str, float]


def _value(kind: str, parameters: Sequence[float], *at: float) -> float:
    """The value of a line m·x + b, a plane a·x + b·y + c, or a parabola a·x² + b·x + c."""
    powers = (at[0] ** 2, at[0], 1.0) if kind == "parabola" else (*at, 1.0)
    return math.fsum(p * x for p, x in zip(parameters, powers, strict=True))


def read_off(ask: Callable[..., Any], kind: str, parameters: Sequence[float]) -> Counts:
    """The learner finds the parameters of a function that stays on this side. Raises WrongAnswer."""
    seen = 0

    def f(*at: Any) -> float:
        nonlocal seen
        seen += 1
        wanted = 2 if kind == "plane" else 1
        if len(at) != wanted or not all(isinstance(x, int | float) and abs(x) < 1e9 for x in at):
            raise WrongAnswer(
                f"it calls `f({', '.join(map(repr, at))})`. A {kind} takes "
                + ("two numbers, x and y." if wanted == 2 else "one number, x.")
            )
        return _value(kind, parameters, *at)

    found = ask(f, kind)
    if not isinstance(found, list) or len(found) != len(parameters):
        raise WrongAnswer(f"it returns {found!r}. A {kind} has {len(parameters)} parameters, in a list.")
    for got, want in zip(found, parameters, strict=True):
        if not isinstance(got, int | float) or not math.isclose(got, want, rel_tol=1e-6, abs_tol=1e-6):
            raise WrongAnswer(f"it finds {found}, should be {list(parameters)}")
    return {"values": float(seen)}


def cosine(u: Sequence[float], v: Sequence[float]) -> float:
    lengths = math.sqrt(math.fsum(x * x for x in u) * math.fsum(x * x for x in v))
    return math.fsum(x * y for x, y in zip(u, v, strict=True)) / lengths if lengths else 0.0


def gate(weights: Sequence[float], outputs: Sequence[float]) -> Counts:
    """Runs the network of nine numbers at its four points."""
    if not isinstance(weights, list) or len(weights) != 9:
        raise WrongAnswer(
            "a 2-2-1 network has nine numbers: three for each hidden unit, three for the output."
        )
    if not all(isinstance(w, int | float) and math.isfinite(w) for w in weights):
        raise WrongAnswer("a weight is no finite number.")
    a1, a2, a0, b1, b2, b0, va, vb, c = weights
    for want, (x1, x2) in zip(outputs, ((0, 0), (0, 1), (1, 0), (1, 1)), strict=True):
        first, second = max(0, a1 * x1 + a2 * x2 + a0), max(0, b1 * x1 + b2 * x2 + b0)
        got = va * first + vb * second + c
        if abs(got - want) > 1e-6 * (1 + abs(want)):
            raise WrongAnswer(
                f"at ({x1}, {x2}) the hidden units give {first:.6g} and {second:.6g} and the output is "
                f"{got:.6g}; it should be {want:g}."
            )
    return {}


def gradients(shares: Sequence[float], tape: Sequence[Sequence[Any]]) -> Counts:
    """Compares with the walk back, and says how the first wrong value is used."""
    wanted = _gradients(tape)
    if not isinstance(shares, list) or len(shares) != len(wanted):
        raise WrongAnswer(f"a list with a gradient for each of the {len(wanted)} values is asked for.")
    for value, (got, want) in enumerate(zip(shares, wanted, strict=True)):
        if not abs(got - want) <= 1e-9 + 1e-7 * abs(want):
            uses = [
                f"{op} (value {user})"
                for user, (op, *arguments) in enumerate(tape)
                for argument in arguments
                if op != "input" and argument == value
            ]
            how = f"used in {', '.join(uses)}" if uses else "never used"
            if value == len(wanted) - 1:
                how = "the last"
            raise WrongAnswer(
                f"the gradient of value {value}, {how}, is {got:.6g} and should be {want:.6g}; the tape is "
                f"{tape}."
            )
    return {}


def _gradients(tape: Sequence[Sequence[Any]]) -> list[float]:
    values: list[float] = []
    for op, *arguments in tape:
        match op:
            case "input":
                values.append(arguments[0])
            case "add":
                values.append(values[arguments[0]] + values[arguments[1]])
            case "mul":
                values.append(values[arguments[0]] * values[arguments[1]])
            case "tanh":
                values.append(math.tanh(values[arguments[0]]))
    shares = [0.0] * len(tape)
    shares[-1] = 1.0
    for place in reversed(range(len(tape))):
        op, *arguments = tape[place]
        if op == "add":
            for each in arguments:
                shares[each] += shares[place]
        elif op == "mul":
            i, j = arguments
            shares[i] += shares[place] * values[j]
            shares[j] += shares[place] * values[i]
        elif op == "tanh":
            shares[arguments[0]] += shares[place] * (1 - values[place] ** 2)
    return shares


def backward(order: Sequence[int], parents: Sequence[Sequence[int]], result: int) -> Counts:
    """Hands shares on in the order of the plan; all must have arrived where they stay."""
    _list_of_numbers(order, len(parents), "value")
    waiting = [0] * len(parents)  # what has arrived at a value since its last visit
    waiting[result] = 1
    for value in order:
        if waiting[value]:
            waiting[value] = 0
            for parent in parents[value]:
                waiting[parent] += 1
    made = f" (parents: {parents})" if len(parents) <= 10 else ""
    for value in (value for value, count in enumerate(waiting) if count):
        if value not in order:
            raise WrongAnswer(
                f"value {value} is never visited, and a share of the gradient has arrived there{made}."
            )
        late = [user for user in order if value in parents[user]][-1]
        raise WrongAnswer(
            f"value {value} is visited for the last time before value {late}, which has yet to hand it a "
            f"share{made}."
        )
    reached = {result}
    stack = [result]
    while stack:
        for parent in parents[stack.pop()]:
            if parent not in reached:
                reached.add(parent)
                stack.append(parent)
    useful = sum(value in reached for value in order)
    return {
        "visits": len(order),
        "visits per value": useful / len(reached),
        "visits of no use": len(order) - useful,
    }


def keep(kept: Sequence[int], tape: Sequence[Sequence[Any]], learn: Sequence[int]) -> Counts:
    """Walks backward with nothing but the inputs and what was kept."""
    _list_of_numbers(kept, len(tape), "value")
    if inputs := [value for value in kept if tape[value][0] == "input"]:
        raise WrongAnswer(
            f"value {inputs[0]} is an input and stays in memory anyway: list results of steps only."
        )
    if len(set(kept)) < len(kept):
        twice = next(value for value in kept if kept.count(value) > 1)
        raise WrongAnswer(f"value {twice} is listed twice.")
    there = set(kept) | {value for value, (op, *_) in enumerate(tape) if op == "input"}
    wanted = set(learn)
    for value, (op, *arguments) in enumerate(tape):
        if op != "input" and wanted & set(arguments):
            wanted.add(value)
    arrived, used = {len(tape) - 1} & wanted, set()
    for value in reversed(range(len(tape))):
        op, *arguments = tape[value]
        if value not in arrived or op == "input":
            continue
        for place, argument in enumerate(arguments):
            if argument not in wanted:
                continue
            arrived.add(argument)
            needed = {"relu": value, "add": None}.get(op, arguments[-1 - place])
            if needed is not None:
                used.add(needed)
            if needed is not None and needed not in there:
                raise WrongAnswer(
                    f"backward through value {value}, a {op}, needs value {needed} for the gradient of value "
                    f"{argument}, and it is not kept. The tape is {list(tape)}."
                )
    return {"numbers kept": NUMBERS * len(kept), "kept of no use": len(set(kept) - used)}


def accumulate(plan: Sequence[Sequence[Any]], tokens: Sequence[int], batch: int, room: int) -> Counts:
    """Adds up the weight that every token gets in each step."""
    done: set[int] = set()
    since: list[tuple[list[int], float]] = []  # passes since the last step
    for number, (rows, weight, step) in enumerate(plan):
        _list_of_numbers(rows, len(tokens), "row")
        if not isinstance(step, bool):
            raise WrongAnswer(f"pass {number} ends in {step!r} and not in True or False.")
        if not rows:
            raise WrongAnswer(f"pass {number} has no rows.")
        if twice := [row for row in rows if row in done or rows.count(row) > 1]:
            raise WrongAnswer(f"row {twice[0]} comes twice.")
        size = len(rows) * max(tokens[row] for row in rows)
        if size > room:
            raise WrongAnswer(
                f"pass {number} has {len(rows)} rows of up to {max(tokens[row] for row in rows)} tokens: "
                f"padded they take {size}, and the room is {room}."
            )
        done |= set(rows)
        since.append((list(rows), float(weight)))
        if step:
            _check_step(since, tokens, batch, room)
            since = []
    if since:
        raise WrongAnswer("after the last passes no step follows: their gradients are lost.")
    if missing := [row for row in range(len(tokens)) if row not in done]:
        raise WrongAnswer(f"row {missing[0]} is in no pass; rows that do not fill a batch count as well.")
    fewest = sum(
        _fewest_passes(tokens[first : first + batch], room) for first in range(0, len(tokens), batch)
    )
    return {"passes": len(plan), "passes too many": len(plan) - fewest}


def _fewest_passes(tokens: Sequence[int], room: int) -> int:
    """No division of a batch has fewer passes: from the longest row on, each as full as it gets."""
    left, passes = sorted(tokens, reverse=True), 0
    while left:
        left = left[room // left[0] :]
        passes += 1
    return passes


def _check_step(
    since: Sequence[tuple[list[int], float]], tokens: Sequence[int], batch: int, room: int
) -> None:
    mine = sorted(row for rows, _ in since for row in rows)
    group = range(mine[0] // batch * batch, min((mine[0] // batch + 1) * batch, len(tokens)))
    if mine != list(group):
        raise WrongAnswer(
            f"a step has rows {_some(mine)}; it should have rows {group[0]} to {group[-1]}, each once."
        )
    total = sum(tokens[row] for row in mine)
    for rows, weight in since:
        own = sum(tokens[row] for row in rows)
        each = weight / own
        if abs(each * total - 1) > 1e-9:
            raise WrongAnswer(
                f"the pass with rows {_some(rows)} gives each of its {own} tokens {each:.6g} of the "
                f"gradient; all {total} tokens of the batch should have equal shares that sum to 1."
            )


def labels(batch: Sequence[Any], rows: Sequence[Sequence[int]], side: str) -> Counts:
    """Compares row by row and place by place."""
    if not isinstance(batch, list) or len(batch) != 3:
        raise WrongAnswer("three lists are asked for: inputs, labels, and who may look where.")
    wanted = _labels(rows, side)
    for name, got, want in zip(("inputs", "labels", "looks"), batch, wanted, strict=True):
        if not isinstance(got, list) or len(got) != len(rows):
            raise WrongAnswer(f"the {name} need an entry for each of the {len(rows)} rows.")
        for row, (mine, right) in enumerate(zip(got, want, strict=True)):
            if name != "looks" and mine != right:
                raise WrongAnswer(f"row {row} is {rows[row]}; its {name} are {mine} and should be {right}.")
            if not isinstance(mine, list) or len(mine) != len(right):
                raise WrongAnswer(
                    f"row {row} has {len(right)} places; each needs its list of places to look at."
                )
            for place, (sees, should) in enumerate(zip(mine, right, strict=True)):
                if sees != should:
                    raise WrongAnswer(
                        f"row {row} is {rows[row]}, padded to {wanted[0][row]}; place {place} looks at "
                        f"{sees} and should look at {should}."
                    )
    return {}


def _labels(rows: Sequence[Sequence[int]], side: str) -> list[Any]:
    longest = max(map(len, rows))
    inputs, targets, look = [], [], []
    for row in rows:
        pad = longest - len(row)
        first = pad if side == "left" else 0
        inputs.append([0] * first + list(row) + [0] * (pad - first))
        present = range(first, first + len(row))
        targets.append(
            [inputs[-1][i + 1] if i in present and i + 1 in present else -100 for i in range(longest)]
        )
        look.append([list(range(first, i + 1)) if i in present else [i] for i in range(longest)])
    return [inputs, targets, look]


def parameters(counts: Sequence[int], model: Mapping[str, Any]) -> Counts:
    """Compares both numbers; where a wrong one is off by one of the parts, names that part."""
    if not isinstance(counts, list) or len(counts) != 2:
        raise WrongAnswer("two numbers are asked for: all parameters, and those that one token uses.")
    for got, experts, what in zip(
        counts, (model["experts"], model["used_experts"]), ("in all", "used by a token"), strict=True
    ):
        parts = _parts(model, experts)
        wanted = sum(parts.values())
        if got != wanted:
            off = abs(got - wanted)
            suspects = parts | _sums(model, parts)
            guess = next((f", as many as {part}" for part, count in suspects.items() if count == off), "")
            raise WrongAnswer(
                f"{what} it should be {wanted:,} and is {got:,}: {off:,} too "
                f"{'many' if got > wanted else 'few'}{guess}."
            )
    return {}


def _parts(model: Mapping[str, Any], experts: int) -> dict[str, int]:
    """The parameters of each part, with that many experts a layer; biases of matrices apart."""
    width, hidden, layers = model["width"], model["hidden"], model["layers"]
    shared = width // model["heads"] * model["kv_heads"]
    biased = 1 if model["biases"] else 0
    into = 2 if model["gated"] else 1
    feed = layers * experts
    norm = width * (2 if model["norm"] == "layer" and biased else 1)
    return {
        "the embedding": model["vocabulary"] * width,
        "the head": 0 if model["tied"] else model["vocabulary"] * width,
        "the places": model["positions"] * width,
        "the last norm": norm,
        "the norms of all layers": layers * 2 * norm,
        "queries and outputs of all layers": layers * 2 * width * width,
        "keys and values of all layers": layers * 2 * width * shared,
        "the biases of attention": layers * biased * 2 * (width + shared),
        "the feed-forward matrices": feed * (into + 1) * width * hidden,
        "the biases of feed-forward": feed * biased * (into * hidden + width),
        "the routers of all layers": layers * width * model["experts"] if model["experts"] > 1 else 0,
    }


def _sums(model: Mapping[str, Any], parts: Mapping[str, int]) -> dict[str, int]:
    """What is forgotten together."""
    of_matrices = parts["the biases of attention"] + parts["the biases of feed-forward"]
    layered = model["norm"] == "layer" and model["biases"]
    of_norms = (2 * model["layers"] + 1) * model["width"] if layered else 0
    return {
        "the biases of all matrices": of_matrices,
        "the biases of all norms": of_norms,
        "all biases": of_matrices + of_norms,
        "all norms": parts["the norms of all layers"] + parts["the last norm"],
    }


# ---------------------------------------------------------------- helpers of the plans


def _list_of_numbers(plan: Any, end: int, what: str) -> None:
    if not isinstance(plan, list):
        raise WrongAnswer(f"a list of {what}s is asked for.")
    for each in plan:
        if not isinstance(each, int) or isinstance(each, bool) or not 0 <= each < end:
            raise WrongAnswer(f"{each!r} is no {what}: they are numbered from 0 to {end - 1}.")


def _some(rows: Sequence[int]) -> str:
    """``0, 1, 2 … 9``: rows, the middle left out if there are many."""
    if len(rows) <= 6:
        return ", ".join(map(str, rows))
    return f"{', '.join(map(str, rows[:4]))} … {rows[-1]}"


REFERENCES: dict[str, Callable[..., Any]] = {
    "neural.read_off": read_off,
    "neural.cosine": cosine,
    "neural.gate": gate,
    "neural.gradients": gradients,
    "neural.backward": backward,
    "neural.keep": keep,
    "neural.accumulate": accumulate,
    "neural.labels": labels,
    "neural.parameters": parameters,
}
