"""Random programs with branches, loops, guards, memory and barriers against a plain interpreter."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from gpulab.simulator import simt
from gpulab.simulator.simt import engine

from .drawing import seeds
from .engines import each_engine as each_engine
from .interpreter import M32, Memory, run_grid
from .launching import kernel, launch

GRID, BLOCK = 2, 48
SLOTS = 4  # words of shared and of global memory that belong to one thread alone
BINS = 8  # words of global memory to which all threads add
REGISTERS = [f"%r{i}" for i in range(8)]
FLOATS = ["%f0", "%f1"]
PREDICATES = [f"%p{i}" for i in range(4)]
BINARY = ("add.s32", "sub.s32", "mul.lo.s32", "and.b32", "or.b32", "xor.b32", "min.s32", "max.u32")


class Writer:
    """Writes a random program, line by line."""

    def __init__(self, seed: int):
        self.draw = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.labels = 0
        self.counters = 0

    def program(self) -> str:
        for i, register in enumerate(REGISTERS):
            self.lines.append(f"mov.u32 {register}, {('%tid', '%at', '%block', str(i * 77))[i % 4]}")
        self.lines += [f"cvt.rn.f32.u32 {f}, %tid" for f in FLOATS]
        self.lines += [f"setp.eq.s32 {p}, %tid, {i}" for i, p in enumerate(PREDICATES)]
        self.lines.append(f"mul.wide.u32 %rd1, %tid, {4 * SLOTS}")
        self.lines.append(f"mad.wide.u32 %rd2, %at, {4 * SLOTS}, %own")
        for _ in range(self.draw.integers(1, 4)):
            self.phase()
        for i, register in enumerate(REGISTERS[:SLOTS]):
            self.lines.append(f"st.global.u32 [%rd2+{4 * i}], {register}")
        return ";\n".join(self.lines).replace(":;", ":") + ";\n"

    def phase(self) -> None:
        """Statements of each thread for itself, a barrier, a look at a neighbour, another barrier."""
        end = self.label()
        self.statements(2, 0, [], end)
        self.lines.append(f"{end}:")
        self.lines.append(f"vote.sync.ballot.b32 {self.register()}, {self.predicate()}, 0xffffffff")
        self.lines.append("bar.sync 0")
        distance = int(self.draw.integers(1, BLOCK))
        wrap = self.label()
        self.lines += [
            f"add.s32 %r10, %tid, {distance}",
            f"setp.lt.s32 %p5, %r10, {BLOCK}",
            f"@%p5 bra {wrap}",
            f"sub.s32 %r10, %r10, {BLOCK}",
            f"{wrap}:",
            f"mul.wide.u32 %rd3, %r10, {4 * SLOTS}",
            f"ld.shared.u32 {self.register()}, [%rd3+{4 * self.draw.integers(SLOTS)}]",
            "bar.sync 0",
        ]

    def statements(self, most: int, depth: int, loop: list[str], end: str) -> None:
        for _ in range(self.draw.integers(2, 4 + most)):
            self.statement(depth, loop, end)

    def statement(self, depth: int, loop: list[str], end: str) -> None:
        """`loop` holds the labels of the innermost loop's next round and end; `end` is the phase's."""
        kinds = ["arithmetic"] * 6 + ["guarded", "compare", "compare", "float", "shift", "select"]
        kinds += ["memory"] * 3 + ["leave"]
        if depth < 3:
            kinds += ["branch", "branch", "loop", "loop"]
        getattr(self, str(self.draw.choice(kinds)))(depth, loop, end)

    # ---- statements: each takes depth, loop, end

    def arithmetic(self, *_: object) -> None:
        self.lines.append(self.operation())

    def guarded(self, *_: object) -> None:
        self.lines.append(f"@{self.sign()}{self.predicate()} {self.operation()}")

    def compare(self, *_: object) -> None:
        test = self.draw.choice(["eq", "ne", "lt", "ge"])
        guard = f"@{self.predicate()} " if self.draw.integers(4) == 0 else ""
        kind = self.draw.choice(["s32", "u32"])
        self.lines.append(
            f"{guard}setp.{test}.{kind} {self.predicate()}, {self.register()}, {self.operand()}"
        )

    def select(self, *_: object) -> None:
        self.lines.append(
            f"selp.b32 {self.register()}, {self.operand()}, {self.register()}, {self.predicate()}"
        )

    def shift(self, *_: object) -> None:
        name = self.draw.choice(["shl.b32", "shr.u32", "shr.s32"])
        by = self.operand() if self.draw.integers(2) else str(self.draw.integers(40))
        self.lines.append(f"{name} {self.register()}, {self.register()}, {by}")

    def float(self, *_: object) -> None:
        """Numbers that stay exact: up to 255, then a sum or product, then back."""
        a, b = FLOATS
        self.lines += [
            f"and.b32 %r11, {self.register()}, 255",
            f"cvt.rn.f32.u32 {a}, %r11",
            f"@{self.predicate()} {self.draw.choice(['add.f32', 'mul.f32'])} {b}, {a}, {a}",
            f"cvt.rzi.u32.f32 {self.register()}, {self.draw.choice(FLOATS)}",
            f"cvt.rn.f32.u32 {b}, %tid",
        ]

    def memory(self, *_: object) -> None:
        """A word of the thread's own in some space, at a place known at run time only; or an atomic."""
        guard = f"@{self.predicate()} " if self.draw.integers(3) == 0 else ""
        words = {"shared": SLOTS, "global": SLOTS, "local": 8}
        space = str(self.draw.choice([*words, "bins"]))
        self.lines.append(f"and.b32 %r12, {self.register()}, {words.get(space, BINS) - 1}")
        base = {"shared": "%rd1", "global": "%rd2", "local": "%stack", "bins": "%bins"}[space]
        self.lines.append(f"mad.wide.u32 %rd4, %r12, 4, {base}")
        if space == "bins":
            self.lines.append(f"{guard}red.global.add.u32 [%rd4], {self.register()}")
        elif space != "local" and self.draw.integers(4) == 0:  # nobody else's, so its result is known
            name = self.draw.choice(["add.u32", "max.u32", "exch.b32"])
            self.lines.append(f"{guard}atom.{space}.{name} {self.register()}, [%rd4], {self.operand()}")
        elif self.draw.integers(2):
            self.lines.append(f"{guard}st.{space}.u32 [%rd4], {self.register()}")
        else:
            self.lines.append(f"{guard}ld.{space}.u32 {self.register()}, [%rd4]")

    def leave(self, depth: int, loop: list[str], end: str) -> None:
        """Out of the loop, on to its next round, to the end of the phase, or (rarely) for good."""
        choice = int(self.draw.integers(12))
        guard = f"@{self.sign()}{self.predicate()}"
        if choice == 0:
            self.lines.append(f"{guard} ret")
        elif choice < 4:
            self.lines.append(f"{guard} bra {end}")
        elif loop:
            self.lines.append(f"{guard} bra {self.draw.choice(loop)}")

    def branch(self, depth: int, loop: list[str], end: str) -> None:
        other, after = self.label(), self.label()
        self.lines.append(f"@{self.sign()}{self.predicate()} bra {other}")
        self.statements(0, depth + 1, loop, end)
        if self.draw.integers(2):
            self.lines.append(f"bra {after}")
            self.lines.append(f"{other}:")
            self.statements(0, depth + 1, loop, end)
            self.lines.append(f"{after}:")
        else:
            self.lines.append(f"{other}:")

    def loop(self, depth: int, loop: list[str], end: str) -> None:
        """Up to seven rounds, as many as a register says; the counter belongs to the loop alone."""
        counter = f"%c{self.counters}"
        self.counters += 1
        again, after = self.label(), self.label()
        self.lines += [
            f"and.b32 {counter}, {self.register()}, 7",
            f"{again}:",
            f"setp.eq.u32 %p6, {counter}, 0",
            f"@%p6 bra {after}",
            f"sub.s32 {counter}, {counter}, 1",
        ]
        self.statements(0, depth + 1, [again, after], end)
        self.lines += [f"bra {again}", f"{after}:"]

    # ---- pieces

    def operation(self) -> str:
        if self.draw.integers(6) == 0:
            return f"mad.lo.s32 {self.register()}, {self.register()}, {self.operand()}, {self.register()}"
        return f"{self.draw.choice(BINARY)} {self.register()}, {self.register()}, {self.operand()}"

    def register(self) -> str:
        return str(self.draw.choice(REGISTERS))

    def operand(self) -> str:
        return self.register() if self.draw.integers(3) else str(self.draw.integers(-9, 100))

    def predicate(self) -> str:
        return str(self.draw.choice(PREDICATES))

    def sign(self) -> str:
        return str(self.draw.choice(["", "!"]))

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"


def expected(body: str, bins: np.ndarray) -> dict[str, np.ndarray]:
    """What the interpreter leaves in global memory."""
    places = {"own": 1 << 20, "bins": 1 << 30, "stack": 0}
    memory = Memory({places["bins"] + 4 * i: int(v) for i, v in enumerate(bins)})
    for _ in run_grid(body, GRID, BLOCK, places, memory):
        pass
    own = [memory.load(places["own"] + 4 * i) for i in range(GRID * BLOCK * SLOTS)]
    return {
        "own": np.array(own, np.uint32),
        "bins": np.array([memory.load(places["bins"] + 4 * i) for i in range(BINS)], np.uint32),
    }


def found(body: str, counters: int, bins: np.ndarray, schedule: simt.Schedule) -> dict[str, np.ndarray]:
    declarations = ".reg .b32 %block; .reg .b64 %stack; .local .align 8 .b8 stack[32];"
    declarations += f".reg .b32 %c<{max(counters, 1)}>;"
    start = "mov.u64 %stack, stack; mov.u32 %block, %ctaid.x; mov.u64 %rd9, tile;\n"
    text = kernel(start + body, "own bins", f".shared .align 4 .b8 tile[{BLOCK * SLOTS * 4}];", declarations)
    own = np.full(GRID * BLOCK * SLOTS, M32, np.uint32)
    return launch(text, {"own": own, "bins": bins}, GRID, BLOCK, schedule=schedule)


@settings(max_examples=60)
@given(seeds)
def test_random_programs_do_what_a_plain_interpreter_says(seed):
    writer = Writer(seed)
    body = writer.program()
    bins = np.zeros(BINS, np.uint32)
    right = expected(body, bins)
    before = engine.CHUNK_LANES
    try:
        for engine.CHUNK_LANES, schedule in (
            (before, simt.LOCKSTEP),
            (1, simt.LOCKSTEP),
            (1, simt.warp_serial(seed)),
        ):
            result = found(body, writer.counters, bins, schedule)
            for name, array in right.items():
                np.testing.assert_array_equal(result[name], array, err_msg=f"{name}, {schedule}\n{body}")
    finally:
        engine.CHUNK_LANES = before
