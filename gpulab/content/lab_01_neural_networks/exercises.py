"""Lab 01: what its nine exercises ask. All are plain Python; of four answers the cost is counted.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| read_off | read_off(f, kind) | a value is an equation | values seen | 10 | 2 or 3 | 2 |
| cosine | cosine(u, v) | weighted sum, agreement | answers | – | – | 2 |
| gate | gate(outputs): nine weights | one kink is enough for XOR | right at 4 points | – | – | 3 |
| gradients | gradients(tape) | chain rule, shares add up | answers | – | – | 3 |
| backward | backward(parents, result): order | each value once, uses first | visits | 2,097,151 | 21 | 4 |
| | | | visits per value | 146 | 1 | |
| | | | visits of no use | – | 0 | |
| keep | keep(tape, learn): values kept | what backward needs | numbers kept | 14·n | 4·n | 3 |
| | | the same, only the last layer learns | numbers kept | 14·n | 2·n | |
| | any tape, any that learn | kept of no use | – | 0 | |
| accumulate | accumulate(tokens, batch, room) | a mean over tokens, in pieces | passes | 32 | 11 | 4 |
| | | the same, rows of any lengths | passes too many | – | 0 | |
| labels | labels(rows, side) | shift, padding, causal mask | answers | – | – | 3 |
| parameters | parameters(model) | where the numbers are | answers | – | – | 3 |

**read_off.** Each value of a line, plane or parabola is one linear equation in its parameters. As many values
as parameters are needed, and at suitable places they suffice: 2, 3 and 3. Parameters are any floats, so that
two of them cannot be read off the digits of one value. Ten values and a least-squares fit find them, too.

**gate.** Any four outputs t00, t01, t10, t11 are t00 + (t10 − t00)·x1 + (t01 − t00)·x2 + k·relu(x1 + x2 − 1)
with k = t11 − t10 − t01 + t00. One hidden unit is the kink, the other carries the straight part, lifted by a
constant so that its relu never cuts.

**backward.** A visit hands on what has arrived at a value since its last visit. Twenty `y = y + y` are 21
values, and every value that the result rests on must be visited: 21. Recursion along every use visits the
value k steps below the result 2^k times: 2^21 − 1 = 2,097,151. Ten skips (`b = f(a)`, `c = a + b`) are 21
values too, beside some that the result does not rest on. The visits of c double with every skip and b is
visited as often as the c above it: (2^11 − 1) + (2^10 − 1) = 3,070 visits, 146 a value. Visits of values
that the result does not rest on count apart.

**keep.** A network of L layers, each matmul, add and relu with n results, n squares for a log, and n products
with the targets. add needs nothing, relu its own result, matmul the result before it, which is the relu's,
and the squares nobody asks for: L·n of (3·L + 2)·n results. If only the last layer learns: its input, for its
weights, and its relu's result, 2·n. L is 4 below. On other tapes what no rule asks for is counted, 0 at best.

**accumulate.** Rows of a pass are padded to its longest, so it takes rows · longest. Sorted from long to
short and filled as far as the room allows, no other division has fewer passes: rows can be exchanged until
each pass is a run of the sorted list, and among those the greedy one is never behind. Rows of 8, 16 … 256
tokens in a room of 512: six passes of two rows (256 … 168), two of three (160 … 120), one each of four
(112 … 88), six (80 … 40) and four (32 … 8), 11 in all. One row a pass is 32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpulab.checks.evidence import AnsweredCases, Dialogues
from gpulab.checks.spec import EVERY, Budget, Case, Exercise, Prediction, Sizes

LAB = "01"

Generator = np.random.Generator
Tape = list[list[Any]]


# ---------------------------------------------------------------- what is asked


PARAMETERS = {"line": 2, "plane": 3, "parabola": 3}


def _curves(sizes: Sizes, numbers: Generator) -> list[tuple[Any, ...]]:
    """(kind, its parameters), which stay with the judge."""
    kind = str(sizes["kind"])
    asked = [numbers.uniform(-9, 9, PARAMETERS[kind]).tolist() for _ in range(4)]
    asked.append([0.0] * PARAMETERS[kind])
    return [(kind, parameters) for parameters in asked]


def _vectors(sizes: Sizes, numbers: Generator) -> list[tuple[Any, ...]]:
    """Pairs of vectors: any, parallel, opposite, and one that is zero."""
    length = int(sizes["length"])
    pairs = []
    for _ in range(3):
        u, v = numbers.normal(0, 10, (2, length)).round(3).tolist()
        pairs.append((u, v))
    u = pairs[0][0]
    pairs += [(u, [3 * x for x in u]), (u, [-0.5 * x for x in u]), (u, [0.0] * length)]
    return pairs


def _gates(sizes: Sizes, numbers: Generator) -> list[tuple[Any, ...]]:
    """Four outputs each, at (0, 0), (0, 1), (1, 0), (1, 1)."""
    match sizes["kind"]:
        case "xor":
            return [([0, 1, 1, 0],)]
        case "gates":
            return [([gate >> bit & 1 for bit in range(4)],) for gate in range(16)]
    return [(numbers.integers(-90, 91, 4).tolist(),) for _ in range(12)]


def random_tape(inputs: int, steps: int, numbers: Generator) -> Tape:
    """A tape whose steps use values from anywhere, often the same one twice."""
    tape: Tape = [["input", float(x)] for x in numbers.uniform(-1.5, 1.5, inputs).round(3)]
    for _ in range(steps):
        i, j = (int(x) for x in numbers.integers(0, len(tape), 2))
        if numbers.random() < 0.2:
            j = i
        op = str(numbers.choice(["add", "mul", "tanh"]))
        tape.append([op, i] if op == "tanh" else [op, i, j])
    return tape


def _tapes(sizes: Sizes, numbers: Generator) -> list[tuple[Any, ...]]:
    match sizes["kind"]:
        case "one step":
            return [
                ([["input", 2.0], ["input", -3.0], ["add", 0, 1]],),
                ([["input", 2.0], ["input", -3.0], ["mul", 0, 1]],),
                ([["input", 0.5], ["tanh", 0]],),
                ([["input", 4.0]],),
            ]
        case "used twice":
            return [
                ([["input", 3.0], ["mul", 0, 0]],),
                ([["input", 3.0], ["add", 0, 0], ["mul", 0, 1]],),
                ([["input", 0.3], ["tanh", 0], ["mul", 1, 0], ["add", 2, 1]],),
            ]
        case "doublings":
            return [([["input", 1.0], *(["add", i, i] for i in range(20))],)]
    return [
        (random_tape(int(numbers.integers(1, 4)), int(sizes["steps"]), numbers),)
        for _ in range(int(sizes["tapes"]))
    ]


def shuffled(parents: list[list[int]], result: int, numbers: Generator) -> tuple[list[list[int]], int]:
    """The same graph under other numbers, the parents of a value in any order."""
    number = [int(x) for x in numbers.permutation(len(parents))]
    renamed: list[list[int]] = [[] for _ in parents]
    for value, mine in enumerate(parents):
        renamed[number[value]] = [int(x) for x in numbers.permutation([number[p] for p in mine])]
    return renamed, number[result]


def _graphs(sizes: Sizes, numbers: Generator) -> list[tuple[Any, ...]]:
    n = int(sizes["n"])
    match sizes["kind"]:
        case "doublings":
            graph: list[list[int]] = [[], *([i, i] for i in range(n))]
            return [shuffled(graph, n, numbers)]
        case "skips":
            graph = [[]]
            for _ in range(n):
                a = len(graph) - 1
                graph += [[a], [a, a + 1]]
            graph += [[i] for i in range(n)]  # made from others, and the result does not rest on them
            return [shuffled(graph, 2 * n, numbers) for _ in range(4)]
    graphs = []
    for _ in range(6):
        graph = [[] if i == 0 else numbers.integers(0, i, numbers.integers(0, 3)).tolist() for i in range(n)]
        graphs.append(shuffled(graph, int(numbers.integers(0, n)), numbers))
    return graphs


def network(layers: int) -> tuple[Tape, list[int]]:
    """matmul, add, relu for each layer, then a product with the targets; and the weights and biases.

    The first layer has a square for the log besides, on which the loss does not rest.
    """
    tape: Tape = [["input"]]
    learned = []
    before = 0
    for _ in range(layers):
        weights = len(tape)
        tape += [["input"], ["input"], ["matmul", before, weights], ["add", weights + 2, weights + 1]]
        tape.append(["relu", weights + 3])
        learned += [weights, weights + 1]
        before = weights + 4
        if len(learned) == 2:
            tape.append(["mul", weights + 3, weights + 3])
    tape += [["input"], ["mul", before, len(tape)]]
    return tape, learned


def _keeping(sizes: Sizes, numbers: Generator) -> list[tuple[Any, ...]]:
    match sizes["kind"]:
        case "small":
            product: Tape = [["input"], ["input"], ["add", 0, 1], ["mul", 2, 0]]
            bent: Tape = [["input"], ["input"], ["mul", 0, 1], ["relu", 2], ["mul", 3, 2]]
            return [(product, [0]), (product, [1]), (product, []), (bent, [0]), (bent, [0, 1])]
        case "all":
            return [network(int(sizes["layers"]))]
        case "last":
            tape, learned = network(int(sizes["layers"]))
            return [(tape, learned[-2:])]
    asked = []
    for _ in range(8):
        tape = [["input"] for _ in range(3)]
        for _ in range(int(sizes["steps"])):
            i, j = (int(x) for x in numbers.integers(0, len(tape), 2))
            op = str(numbers.choice(["add", "mul", "matmul", "relu"]))
            tape.append([op, i] if op == "relu" else [op, i, j])
        asked.append((tape, [i for i in range(3) if numbers.random() < 0.5]))
    return asked


def _rows_of_tokens(sizes: Sizes, numbers: Generator) -> list[tuple[Any, ...]]:
    rows, batch, room = (int(sizes[name]) for name in ("rows", "batch", "room"))
    if sizes["kind"] == "steps of 8":
        return [([int(x) for x in numbers.permutation(range(8, 8 * rows + 1, 8))], batch, room)]
    return [([int(x) for x in numbers.integers(1, room + 1, rows)], batch, room) for _ in range(4)]


def _language_rows(sizes: Sizes, numbers: Generator) -> list[tuple[Any, ...]]:
    """Rows for either side; token 0 stands where padding would, too."""
    asked = []
    for side in ("right", "left"):
        lengths = numbers.integers(2, int(sizes["longest"]) + 1, int(sizes["rows"]))
        if len(lengths) > 1:
            lengths[-1] = 1
        rows = [numbers.integers(0, 90, length).tolist() for length in lengths]
        rows[0][-1 if side == "right" else 0] = 0
        asked.append((rows, side))
    return asked


def _models(sizes: Sizes, numbers: Generator) -> list[tuple[Any, ...]]:
    asked: list[tuple[Any, ...]] = []
    for _ in range(int(sizes["models"])):
        kv_heads = int(numbers.integers(1, 5))
        sharing = int(numbers.choice([1, 2, 4]))
        width = kv_heads * sharing * int(numbers.choice([4, 8, 16]))
        model: dict[str, Any] = {
            "vocabulary": int(numbers.integers(50, 5000)),
            "positions": int(numbers.choice([0, 128, 512])),
            "width": width,
            "layers": int(numbers.integers(0, 9)),
            "heads": kv_heads * sharing,
            "kv_heads": kv_heads,
            "hidden": int(numbers.choice([2, 3, 4])) * width,
            "gated": False,
            "biases": True,
            "norm": "layer",
            "tied": True,
            "experts": 1,
            "used_experts": 1,
        }
        if sizes["kind"] != "GPT":
            model |= {"positions": 0, "gated": True, "biases": False, "norm": "rms", "tied": False}
        else:
            model |= {"kv_heads": model["heads"]}
        if sizes["kind"] == "experts":
            model |= {"experts": int(numbers.integers(2, 9)), "used_experts": 2}
        if sizes["kind"] == "mixed" and not asked:
            model |= {"norm": "layer"}  # without biases
        elif sizes["kind"] == "mixed":
            for name, choices in (
                ("gated", (True, False)),
                ("biases", (True, False)),
                ("norm", ("layer", "rms")),
                ("tied", (True, False)),
                ("positions", (0, 64)),
            ):
                model[name] = choices[int(numbers.integers(2))]
        asked.append((model,))
    return asked


def kept_naive(sizes: Sizes) -> float:
    """Numbers of all results of `network`."""
    return (3 * int(sizes["layers"]) + 2) * NUMBERS


NUMBERS = 8192  # of each result of the network in neural.keep: 64 rows of 128

SKIPS, DOUBLINGS = 10, 20

# The fewest passes of neural.accumulate for rows of 8, 16, 24 … tokens, by number of rows and room.
FEWEST = {(32, 512): 11, (24, 384): 8}

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="neural.read_off",
        lab=LAB,
        correct_points=1.0,
        evidence=Dialogues(questions=_curves),
        cases=tuple(Case(kind, {"kind": kind}) for kind in PARAMETERS),
        budgets=(
            Budget(
                "values",
                lambda sizes: PARAMETERS[str(sizes["kind"])],
                1.0,
                "values seen",
                naive=10,
                unit="values",
                case=EVERY,
                why="one for each parameter",
                advice="Each value is one equation, and you need as many as there are unknowns. Which places "
                "make the equations simple?",
            ),
        ),
        hints=(
            "What is left of a line, a plane or a parabola at 0, where every term with x or y vanishes?",
            "For a line and a plane, go one step to the side. By how much has the value changed, and which "
            "parameter is that?",
            "For a parabola, look at 1 and at −1. The sum of the two values is 2a + 2c, and their difference "
            "is 2b.",
        ),
        section="What a parameter does",
    ),
    Exercise(
        name="neural.cosine",
        lab=LAB,
        correct_points=2.0,
        evidence=AnsweredCases(questions=_vectors),
        cases=tuple(Case(f"{n} numbers", {"length": n}) for n in (2, 1, 3, 100)),
        rtol=1e-9,
        atol=1e-12,
        hints=(
            "You need three sums over pairs of numbers: u times v, u times u, and v times v.",
            "The length of a vector is the square root of the sum of its squares. Divide by both lengths.",
            "If one of the lengths is zero, return 0.0 before you divide.",
        ),
        section="3 · A neuron asks how much two vectors agree",
    ),
    Exercise(
        name="neural.gate",
        lab=LAB,
        correct_points=3.0,
        evidence=AnsweredCases(questions=_gates, measured=True),
        cases=(
            Case("XOR", {"kind": "xor"}),
            Case("all 16 gates", {"kind": "gates"}),
            Case("any four numbers", {"kind": "any"}),
        ),
        hints=(
            (
                "For XOR alone, let the first unit be relu(x1 + x2). What does it give at the four points, "
                "and what must you subtract at one of them?"
            ),
            (
                "A linear part can be right at three corners. Which relu is 0 at these three and not at the "
                "fourth? The linear part must go through the other relu unchanged: where is its sum negative?"
            ),
            (
                "Let the linear part be right at (0, 0), (0, 1) and (1, 0). How low can a·x1 + b·x2 get at a "
                "corner? Shift it up by at least that, and subtract the shift in c. The bend is "
                "relu(x1 + x2 − 1)."
            ),
        ),
        section="5 · Nine numbers that can do it",
    ),
    Exercise(
        name="neural.gradients",
        lab=LAB,
        correct_points=3.0,
        evidence=AnsweredCases(questions=_tapes, measured=True),
        cases=(
            Case("one step", {"kind": "one step"}),
            Case("a value used twice", {"kind": "used twice"}),
            Case("20 doublings", {"kind": "doublings"}),
            Case("12 steps", {"kind": "random", "steps": 12, "tapes": 12}),
        ),
        hints=(
            (
                "Go through the tape twice: forwards to compute every value, and backwards to pass on the "
                "gradients. The last value's gradient is 1."
            ),
            "A value that is used twice gets a share from each use. So add to its gradient, do not set it.",
            (
                "add passes its gradient g to both values. mul passes g times the other value to each. tanh "
                "passes g · (1 − t²), where t is its own value."
            ),
        ),
        section="6 · Which way is down",
    ),
    Exercise(
        name="neural.backward",
        lab=LAB,
        correct_points=1.0,
        evidence=AnsweredCases(questions=_graphs, measured=True),
        cases=(
            Case("2 skips", {"kind": "skips", "n": 2}),
            Case("9 values", {"kind": "any", "n": 9}),
            Case("one value", {"kind": "any", "n": 1}),
            Case("60 values", {"kind": "any", "n": 60}),
            Case("10 skips", {"kind": "skips", "n": SKIPS}),
            Case("20 doublings", {"kind": "doublings", "n": DOUBLINGS}),
        ),
        budgets=(
            Budget(
                "visits",
                lambda sizes: int(sizes["n"]) + 1,
                1.0,
                "visits",
                naive=lambda sizes: 2 ** (int(sizes["n"]) + 1) - 1,
                unit="visits",
                why="20 doublings: each value once",
                advice="Can a value wait until all its shares have arrived?",
            ),
            Budget(
                "visits per value",
                1,
                1.0,
                "visits per value",
                naive=3070 / 21,
                why="each value once",
                advice="Which values do you visit before others that still have something to pass to them?",
                case=EVERY,
            ),
            Budget(
                "visits of no use",
                0,
                1.0,
                "visits of no use",
                unit="visits",
                why="only values that the result depends on",
                advice="Does the result depend on every value that you visit?",
                case=EVERY,
            ),
        ),
        hints=(
            (
                "A value may be visited when all values that were made from it, and on which the result "
                "depends, have been visited."
            ),
            (
                "Build the list from its end. Which value may come last? And when may you write down a value "
                "whose parents are already in the list?"
            ),
            (
                "Go from the result along the parents, and mark what you have seen. Should you write a value "
                "down when you reach it, or when you leave it?"
            ),
        ),
        section="7 · Each value once",
    ),
    Exercise(
        name="neural.keep",
        lab=LAB,
        correct_points=1.0,
        evidence=AnsweredCases(questions=_keeping, measured=True),
        cases=(
            Case("small tapes", {"kind": "small"}),
            Case("any tapes", {"kind": "any", "steps": 12}),
            Case("all layers learn", {"kind": "all", "layers": 4}),
            Case("the last layer learns", {"kind": "last", "layers": 4}),
        ),
        budgets=(
            Budget(
                "numbers kept",
                lambda sizes: int(sizes["layers"]) * NUMBERS,
                0.5,
                "all layers learn",
                naive=kept_naive,
                unit="numbers",
                why="one result for each layer",
                advice="Which of the results that you keep does no rule of the table ask for?",
                case="all layers learn",
            ),
            Budget(
                "numbers kept",
                2 * NUMBERS,
                0.5,
                "last layer learns",
                naive=kept_naive,
                unit="numbers",
                why="its input and its relu",
                advice="How far back does a gradient travel if nothing before the last layer learns?",
                case="the last layer learns",
            ),
            Budget(
                "kept of no use",
                0,
                1.0,
                "kept of no use",
                unit="values",
                why="any tape",
                advice=(
                    "For each value that you keep, ask: which step needs it, and does the last value depend "
                    "on that step?"
                ),
                case=EVERY,
            ),
        ),
        hints=(
            (
                "First find the values whose gradient is wanted at all: the inputs that learn, and every "
                "value made from one whose gradient is wanted."
            ),
            (
                "Then go back from the last value, and mark what you reach. A step that you do not reach "
                "needs nothing."
            ),
            (
                "Consider the steps that are both wanted and reached. relu keeps its own result. mul and "
                "matmul keep i if the gradient of j is wanted, and j if that of i is. Leave out inputs."
            ),
        ),
        section="9 · What forward keeps",
    ),
    Exercise(
        name="neural.accumulate",
        lab=LAB,
        correct_points=2.0,
        evidence=AnsweredCases(questions=_rows_of_tokens, measured=True),
        cases=(
            Case("6 rows, 1 step", {"kind": "any", "rows": 6, "batch": 6, "room": 20}),
            Case("37 rows, 16 a step", {"kind": "any", "rows": 37, "batch": 16, "room": 100}),
            Case("no rows", {"kind": "any", "rows": 0, "batch": 4, "room": 10}),
            Case("32 rows of 8 to 256", {"kind": "steps of 8", "rows": 32, "batch": 32, "room": 512}),
        ),
        budgets=(
            Budget(
                "passes",
                lambda sizes: FEWEST[int(sizes["rows"]), int(sizes["room"])],
                1.0,
                "passes",
                naive=lambda sizes: int(sizes["rows"]),
                unit="passes",
                why="no plan has fewer",
                advice="What does a short row cost in the same pass as a long one?",
            ),
            Budget(
                "passes too many",
                0,
                1.0,
                "passes too many",
                unit="passes",
                why="rows of any lengths",
                advice="Could a row of a later pass of the batch move to an earlier pass that still has "
                "room for it?",
                case=EVERY,
            ),
        ),
        hints=(
            (
                "The gradient of the whole batch is that of the mean over all its tokens. A pass has the "
                "mean over its own tokens. What share of the batch's tokens are they?"
            ),
            (
                "A pass takes its number of rows times its longest row. With which other rows does a long "
                "row waste least?"
            ),
            "If you know the longest row of a pass, how many rows fit into it, and which ones would you "
            "take?",
        ),
        section="10 · A batch in pieces",
    ),
    Exercise(
        name="neural.labels",
        lab=LAB,
        correct_points=3.0,
        evidence=AnsweredCases(questions=_language_rows, measured=True),
        cases=(
            Case("one row", {"rows": 1, "longest": 4}),
            Case("3 rows", {"rows": 3, "longest": 5}),
            Case("8 rows", {"rows": 8, "longest": 9}),
        ),
        hints=(
            "Find out for each place of a row whether it is a token or padding. The rest follows from that "
            "and the tokens.",
            "The label of a place is the token at the next place if both are tokens, and −100 otherwise.",
            (
                "A place with a token may look at all places with tokens up to itself. A place of padding "
                "may look only at itself."
            ),
        ),
        section="12 · Shifted labels, padding, and who may look where",
    ),
    Exercise(
        name="neural.parameters",
        lab=LAB,
        correct_points=3.0,
        evidence=AnsweredCases(questions=_models, measured=True),
        cases=(
            Case("like GPT-2", {"kind": "GPT", "models": 4}),
            Case("like Llama", {"kind": "Llama", "models": 4}),
            Case("with experts", {"kind": "experts", "models": 4}),
            Case("any mixture", {"kind": "mixed", "models": 10}),
        ),
        hints=(
            "Write down each matrix of one layer with its two sizes. Keys and values may be narrower than "
            "queries.",
            (
                "With biases, each matrix inside a layer has one bias for each output. A norm has width "
                "numbers, and a layer norm with biases twice as many. One more norm comes after all layers."
            ),
            (
                "All experts count for the first number, and the used ones for the second. The router, width "
                "× experts without biases, exists only with more than one expert."
            ),
        ),
        section="14 · How large models are",
    ),
)

PREDICTIONS: tuple[Prediction, ...] = (
    Prediction(
        name="neural.bandwidth",
        lab=LAB,
        question="The bandwidth in 2024 by a straight line through the logarithms of 900 GB/s (2017), 2,039 "
        "(2020) and 3,350 (2022)",
        unit="GB/s",
        tolerance=0.12,
        reason="From 2017 to 2022 it grew by a factor of 3.7, which is 1.3 per year. Two more years make it "
        "3,350 · 1.3 · 1.3 = 5,660.",
    ),
    Prediction(
        name="neural.lowest",
        lab=LAB,
        question="The x at which x² + 2x + 1 is lowest",
        unit="",
        answer=-1,
        tolerance=0,
        reason="x² + 2x + 1 = (x + 1)², which is 0 at −1 and positive elsewhere. In general it is −b / 2a.",
    ),
    Prediction(
        name="neural.flop",
        lab=LAB,
        question="How many FLOP does the product of 1,024 rows of 512 with weights of 512 × 256 take?",
        unit="FLOP",
        answer=268_435_456,
        tolerance=0.01,
        reason="There are 1,024 · 256 outputs with 512 products and as many additions each: 2 · 1,024 · 256 "
        "· 512.",
    ),
    Prediction(
        name="neural.visits",
        lab=LAB,
        question="How many visits does recursion along every use make for twenty `y = y + y`?",
        unit="visits",
        answer=2_097_151,
        tolerance=0.01,
        reason="Each level is visited twice as often as the one above: 1 + 2 + 4 + … + 2²⁰ = 2²¹ − 1.",
    ),
    Prediction(
        name="neural.solved",
        lab=LAB,
        question="From how many of 200 starts does the 2-2-1 network with relu learn XOR?",
        unit="of 200",
        tolerance=0.25,
        reason="A unit whose relu is cut off at all four points, or at none, cannot bend. Its start decides.",
    ),
    Prediction(
        name="neural.halves",
        lab=LAB,
        question="With losses of 4.0 over 10 tokens and 2.0 over 30 tokens, what is the mean over all 40?",
        unit="nats",
        answer=2.5,
        tolerance=0.001,
        reason=(
            "(10 · 4.0 + 30 · 2.0) / 40 = 2.5. The mean of the two means is 3.0, because it counts each "
            "token of the short piece three times as much."
        ),
    ),
    Prediction(
        name="neural.first_step",
        lab=LAB,
        question=("How far does AdamW's first step go, with a learning rate of 0.1 and a gradient of 0.001?"),
        tolerance=0.01,
        reason="The first step divides the gradient by its own size, so its length is the learning rate.",
    ),
    Prediction(
        name="neural.floor",
        lab=LAB,
        question="What is the least possible loss on stories, in nats per character?",
        unit="nats",
        tolerance=0.05,
        reason="One of 11,520 equally likely stories: ln 11,520 = 9.35 nats, over about 65 characters.",
    ),
    Prediction(
        name="neural.training_bytes",
        lab=LAB,
        question="How many TB do 175 billion parameters take in mixed precision with Adam, before any "
        "activation?",
        unit="TB",
        answer=2.8,
        tolerance=0.02,
        reason="16 bytes each: 2 for weights, 2 for gradients, 4 + 4 + 4 for the float32 copy and Adam's "
        "two means.",
    ),
)
