"""`trace`: run a kernel once, compiled so that its variables can be looked at, and write the steps down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab.analysis.profile.onto_simulator import arrays_there, onto_simulator
from gpulab.analysis.profile.to_run import misuse
from gpulab.foundation.display import Block, Card, Heading, Note, Piece, Shown, Span, Table, Words
from gpulab.foundation.errors import Message, shorten
from gpulab.simulator import device as devices
from gpulab.simulator import simt
from gpulab.simulator.compile import is_learners
from gpulab.simulator.device.simulated import Simulator, scratch
from gpulab.simulator.ptx import Module, source_variables
from gpulab.simulator.simt.memory import Variables

from . import stepping
from .arrays import Arrays
from .steps import Name, Step, Steps, Value
from .stops import stops_of
from .threads import CannotTrace, Chosen, chosen

if TYPE_CHECKING:
    from gpulab.plot import Picture
    from gpulab.plot.moving import Moving

MOST_THREADS = 1 << 18  # of a launch: some seconds for a simple kernel
ROWS = 200  # steps that are kept unless more are asked for
SOURCE = 44  # characters of a source line
NONE = "–"
HOW = (
    "A row is a source line that a thread has executed, with the variables after it; what a row changed is "
    "strong. lanes: those of the warp that took part, lane 0 the lowest bit. Empty: the thread took no part. "
    f"{NONE}: not set yet, or no value that the compiler kept. Compiled without optimisation, so that there "
    "is a value to look at: the instructions are others than those that are counted."
)
LINES_ONLY = (
    "A row is a source line that a thread has executed. lanes: those of the warp that took part, lane 0 the "
    "lowest bit. There are no variables, because the compiler of {kernel} does not say where they are. The "
    "code is optimised, so lines follow one another as the compiler has ordered them."
)


class Trace(Shown):
    """The steps of chosen threads through one launch. `steps` are in the order of the run; `fault` is what
    stopped the kernel, if something did. A notebook shows a figure to step through, in which the other
    threads of their warps run, too (`every`); a terminal shows a table."""

    def __init__(
        self,
        kernel: str,
        threads: Sequence[Chosen],
        steps: Steps,
        launch: devices.Launch,
        fault: simt.KernelFault | None,
    ):
        self._how = HOW if launch.kernel.with_variables else LINES_ONLY.format(kernel=kernel)
        self.kernel, self.threads, self.fault = kernel, tuple(threads), fault
        self._grid, self._block = launch.grid, launch.block
        self.steps, self.every, self.dropped = steps.steps, steps.every, steps.dropped
        self._order = steps.order

    @property
    def variables(self) -> tuple[str, ...]:
        """The names that the table has columns for; those of a device function follow its name and a dot."""
        return tuple(dict.fromkeys(_written(name) for name in self._shown_names(self.steps)))

    def _shown_names(self, steps: Sequence[Step]) -> list[Name]:
        """Names that have a value in some step."""
        having = {name for step in steps for values in step.values.values() for name in values}
        return [name for name in self._order if name in having]

    def values(self, variable: str, thread: int = 0) -> list[Value | None]:
        """What a variable holds after each step of a chosen thread (the first, the second …)."""
        name = next((n for n in self._order if _written(n) == variable), None)
        if name is None:
            raise CannotTrace(
                f"trace: there is no variable {variable!r}; there are {', '.join(self.variables) or 'none'}."
            )
        who = self.threads[thread]
        return [step.values[who].get(name) for step in self.steps if who in step.values]

    # ---- showing ---------------------------------------------------------------------------------

    def card(self) -> Card:
        pieces: list[Piece] = []
        for place, steps in self._by_warp():
            block = _index(place[0], self._grid)
            pieces.append(Heading(self.kernel, f"block {block} · warp {place[1]}"))
            pieces.append(self._table(steps))
        if not self.steps:
            pieces.append(Heading(self.kernel, "no step"))
            pieces.append(Note("The chosen threads executed no line of the source."))
        if self.dropped:
            pieces.append(Note(f"{self.dropped:,} more rows were not kept: ask for them with rows=…"))
        if self.fault is not None:
            pieces += [Note("Here the kernel was stopped:"), Block(str(self.fault))]
        pieces.append(Note(self._how))
        return Card(tuple(pieces))

    def _by_warp(self) -> Iterator[tuple[tuple[int, int], list[Step]]]:
        for place in dict.fromkeys((thread.block, thread.warp) for thread in self.threads):
            if steps := [step for step in self.steps if (step.block, step.warp) == place]:
                yield place, steps

    def _table(self, steps: list[Step]) -> Table:
        names = self._shown_names(steps)
        threads = [t for t in self.threads if (t.block, t.warp) == (steps[0].block, steps[0].warp)]
        many = len(self.threads) > 1
        header = ["line", "source", "lanes"]
        for thread in threads:
            header += [f"{_written(name)} · {thread.label}" if many else _written(name) for name in names]
        rows = [(str(s.location.line), Span(_short(s.text), "code"), f"{s.mask:08x}") for s in steps]
        columns = [self._column(steps, thread, name) for thread in threads for name in names]
        whole: list[tuple[Words, ...]] = (
            [(*row, *cells) for row, cells in zip(rows, zip(*columns, strict=True), strict=True)]
            if columns
            else list(rows)
        )
        return Table(tuple(header), tuple(whole), left=frozenset({1, 2}))

    @staticmethod
    def _column(steps: list[Step], thread: Chosen, name: Name) -> list[Words]:
        """The values of one variable of one thread, a changed one strong."""
        cells: list[Words] = []
        before = None
        for step in steps:
            if thread not in step.values:
                cells.append("")
                continue
            value = step.values[thread].get(name)
            if value is None and name[0]:  # of a device function that is not running
                cells.append("")
                continue
            shown = NONE if value is None else _shown(value)
            cells.append(Span(shown, "strong" if value is not None and shown != before else "dim"))
            before = shown
        return cells

    def figure(self) -> Moving:
        """The steps as a figure to step through. Raises CannotDraw without a step."""
        stopped = self.fault is not None
        return stepping.figure(self.kernel, self.threads, self.every, self._order, self._block, stopped)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._html()}

    def _repr_html_(self) -> str:
        return self._html()

    def _html(self) -> str:
        """The figure, and below it what stopped the kernel."""
        if not self.every:
            return self.card().html()
        if self.fault is None:
            return self.figure().html()
        stopped = Card((Note("Here the kernel was stopped:"), Block(str(self.fault))))
        return self.figure().html() + stopped.html()

    def picture(self) -> Picture:
        """The tables as a figure. Raises NothingToDraw without a step."""
        from gpulab import plot

        found = []
        for (block, warp), steps in self._by_warp():
            table = self._table(steps)
            title = f"{self.kernel} · block {_index(block, self._grid)} · warp {warp}"
            found.append(plot.Steps(title, table.header, [_cells(row) for row in table.rows], table.left))
        return plot.step_table(found)

    def save(self, path: str | Path) -> None:
        """Write it to a file: ``.html`` a page of its own, ``.png`` an image, ``.txt`` text."""
        path = Path(path)
        if path.suffix == ".png":
            self.picture().save(path)
        elif path.suffix == ".txt":
            path.write_text(f"{self}\n", encoding="utf-8")
        elif path.suffix in (".html", ".htm"):
            page = f"<!doctype html><meta charset=utf-8><title>{escape(self.kernel)}</title>"
            page += '<meta name="viewport" content="width=device-width">'
            page += '<meta name="color-scheme" content="light dark">'
            path.write_text(page + self._html(), encoding="utf-8")
        else:
            raise CannotTrace(f"trace: {path.name!r} says no kind of file; write .html, .png or .txt.")


def trace(
    run: Callable[..., Any], *args: Any, threads: Any = (0,), rows: int = ROWS, launch: int = 0, **named: Any
) -> Trace:
    """Run ``run(*args, **named)`` and step through chosen threads of one launch, the first by default.

    `run` is a kernel with its launch shape, ``kernel[grid, block]``, a CuPy kernel, or host code that
    launches some, of which `launch` counts from 0. Kernels of numba and CUDA C++ are shown with their
    variables, those of other languages line by line. `threads` are numbers that count over the whole grid, or
    pairs (block, thread). The launch really runs and leaves its results. At most `rows` rows are kept. Raises
    CannotTrace, and whatever a wrong launch raises; a fault in the kernel ends the table.

    >>> @cuda.jit
    ... def fill(out):
    ...     i = cuda.grid(1)
    ...     if i < out.size:
    ...         out[i] = 1
    >>> stepped = gpulab.trace(fill[4, 32], np.zeros(100, np.int32), threads=[3])
    >>> stepped.kernel
    'fill'
    """
    if problem := misuse("trace", run, args, named):
        raise CannotTrace(problem)
    if devices.uses_gpu():
        run = onto_simulator(run)
    device = devices.current()
    stepper = _Stepper(threads, rows, launch)
    with arrays_there(args) as there, device.executed_by(stepper):
        try:
            run(*there, **named)
        except simt.KernelFault:
            if stepper.trace is None or stepper.trace.fault is None:
                raise
        except Message as error:
            raise shorten(error) from None
    if stepper.trace is None:
        name = getattr(run, "__name__", "this")
        raise CannotTrace(
            f"trace: `{name}` launched no kernel."
            if not stepper.launched
            else f"trace: `{name}` has launches 0 to {stepper.launched - 1}, and no launch {launch}."
        )
    return stepper.trace


class _Stepper:
    """Carries out launches: one is stepped through, the others run as ever."""

    def __init__(self, threads: Any, rows: int, number: int):
        self.threads, self.rows, self.number = threads, rows, number
        self.launched = 0
        self.trace: Trace | None = None

    def launch(self, device: devices.SimulatedDevice, launch: devices.Launch) -> None:
        self.launched += 1
        if self.launched != self.number + 1:
            Simulator().launch(device, launch)
            return
        who = chosen(self.threads, launch)
        threads = launch.blocks * launch.threads_per_block
        if threads > MOST_THREADS:
            raise CannotTrace(
                f"trace: {launch.kernel.name} is launched with {threads:,} threads; stepping runs them all "
                f"without optimisation, so take a launch of at most {MOST_THREADS:,}."
            )
        kernel = launch.kernel.with_variables() if launch.kernel.with_variables else launch.kernel
        module = device.module(kernel.ptx)
        if launch.kernel.with_variables is None and not _has_source(module):
            raise CannotTrace(
                f"trace: the PTX of {launch.kernel.name} does not say which source lines it was made from; "
                "what was compiled from source here can be stepped through."
            )
        _share_variables(device, launch.kernel.ptx, kernel.ptx)
        variables = source_variables(kernel.ptx)
        stops = stops_of(module, kernel.ptx, variables)
        arrays = Arrays(launch.arrays, device.memory, kernel.numbers)
        steps = Steps(who, variables, stops, is_learners, self.rows, arrays)
        program = simt.load(module, kernel.entry, kernel.name, stops.lines)
        fault = None
        try:
            with scratch(device, launch) as arguments:
                simt.launch(
                    program,
                    launch.grid,
                    launch.block,
                    arguments,
                    device.memory,
                    shared_bytes=launch.shared_bytes,
                    observers=(steps,),
                    arrays=launch.arrays,
                    guard=kernel.guard,
                    cluster=launch.cluster,
                    **(
                        {"resident_blocks": device.resident_blocks(launch) if program.ordered else None}
                        | device.options
                    ),
                )
        except simt.KernelFault as stopped:
            fault = stopped
        self.trace = Trace(kernel.name, who, steps, launch, fault)
        if fault is not None:
            raise fault

    def host_access(self, device: devices.SimulatedDevice, allocation: simt.Allocation, writes: bool) -> None:
        pass


def _has_source(module: Module) -> bool:
    """Whether an instruction comes from a line of the learner's."""
    instructions = (i for f in module.functions.values() for block in f.blocks for i in block.instructions)
    return any(i.location is not None and is_learners(i.location.file) for i in instructions)


def _share_variables(device: devices.SimulatedDevice, plain: str, stepped: str) -> None:
    """Let both compilations of one source use the same global and constant variables."""
    known = simt.variables_of(device.module(plain), device.memory)
    own = simt.variables_of(device.module(stepped), device.memory)
    module = device.module(stepped)
    shared = own | {name: address for name, address in known.items() if name in own}
    device.memory.modules[id(module)] = Variables(module, shared)


def _written(name: Name) -> str:
    return ".".join(filter(None, name))


def _shown(value: Value) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    return str(value)


def _short(text: str) -> str:
    return text if len(text) <= SOURCE else f"{text[: SOURCE - 1]}…"


def _cells(row: tuple[Words, ...]) -> list[tuple[str, str]]:
    """(text, style) of each cell."""
    return [(cell.text, cell.style) if isinstance(cell, Span) else (str(cell), "") for cell in row]


def _index(linear: int, shape: tuple[int, int, int]) -> str:
    x, y, z = linear % shape[0], linear // shape[0] % shape[1], linear // (shape[0] * shape[1])
    return str(x) if shape[1:] == (1, 1) else str((x, y) if shape[2] == 1 else (x, y, z))
