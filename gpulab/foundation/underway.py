"""What takes longer than two seconds says in a notebook what it does, how far it is, and how long it
still takes.

Whoever begins something puts it on a stack (`work`) and counts up `done`; a thread of the cell looks at
the stack
twice a second and shows it below the cell. Nothing is shown of what is over in time, and nothing outside of
notebooks. Interrupting is the work's own business: this only reminds that one may.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Any

from .display import notebook

PATIENCE = 2.0  # seconds until something is said
PACE = 0.5  # seconds between two looks


@dataclass
class Work:
    """Something that is being done: `done` of `total` parts, 0 where nobody knows how many there are."""

    what: str
    total: int = 0
    part: str = ""
    done: int = 0
    began: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        if not self.total:
            return self.what
        return f"{self.what}, {self.part} {min(self.done + 1, self.total):,} of {self.total:,}".replace(
            ",  ", ", "
        )


_stack: list[Work] = []
_threads: dict[Any, threading.Thread] = {}  # the last cell's, by its execution count


def watched() -> bool:
    """Whether anybody would see what is said."""
    return notebook() is not None


@contextmanager
def work(what: str, total: int = 0, part: str = "") -> Iterator[Work]:
    """Say that `what` is being done in `total` parts, each called `part`: ``work("checking", 6, "size")``."""
    mine = Work(what, total, part)
    if watched():
        _stack.append(mine)
        _watch()
    try:
        yield mine
    finally:
        if mine in _stack:
            del _stack[_stack.index(mine) :]


def told(stack: list[Work], now: float) -> tuple[str, float | None]:
    """What to say of nested works, and which share of the outermost is done; None if nobody knows."""
    outer = stack[0]
    seconds = now - outer.began
    counted = next((each for each in stack if each.total), None)
    share = None
    if counted is not None:
        inner = stack[stack.index(counted) + 1 :]
        finer = next((each.done / each.total for each in inner if each.total), 0.0)
        share = min((counted.done + finer) / counted.total, 1.0)
    said = " · ".join(str(each) for each in stack)
    time_said = f"{_clock(seconds)} so far"
    if share:
        time_said += f", about {_clock(seconds * (1 - share) / share)} left"
    return f"{said} · {time_said}", share


def _clock(seconds: float) -> str:
    return f"{round(seconds) // 60}:{round(seconds) % 60:02}"


def html(said: str, share: float | None) -> str:
    """A line with a bar."""
    bar = "" if share is None else f' value="{share:.3f}"'
    style = "display:flex;flex-wrap:wrap;gap:.3em .8em;align-items:center;font:13px system-ui,sans-serif"
    return (
        f'<div class="gpulab-underway" role="status" style="{style}"><progress max="1"{bar}'
        ' style="width:9em"></progress>'
        f'<span>{escape(said)}</span><span style="opacity:.75">■ stops it; what is done stays</span></div>'
    )


def _watch() -> None:
    """A thread for this cell: what it shows belongs below the cell that started it."""
    shell = notebook()
    cell = shell.execution_count if shell is not None else None
    thread = _threads.get(cell)
    if shell is not None and (thread is None or not thread.is_alive()):
        if _ended not in shell.events.callbacks["post_run_cell"]:
            shell.events.register("post_run_cell", _ended)
        _threads.clear()
        _threads[cell] = threading.Thread(target=_look, args=(_shower(),), daemon=True)
        _threads[cell].start()


def _ended(*_: Any) -> None:
    """The cell is over, and so is all that it began: a loop that an error left keeps its work until then."""
    _stack.clear()


def _look(show: Callable[[str, float | None], None]) -> None:
    """Until a later cell has a thread, or nothing was done for a while."""
    shown, idle = False, 0.0
    while idle < 10 * PATIENCE and threading.current_thread() in _threads.values():
        time.sleep(PACE)
        stack, now = list(_stack), time.monotonic()
        if stack and now - stack[0].began >= PATIENCE:
            show(*told(stack, now))
            shown, idle = True, 0.0
        elif shown and not stack:
            show("", None)
            shown = False
        idle = 0.0 if stack else idle + PACE
    if shown:
        show("", None)


def _shower() -> Callable[[str, float | None], None]:
    """Shows a line below the cell, in the place of the one before; nothing once it is over."""
    from IPython.display import display

    handle: list[Any] = []

    def show(said: str, share: float | None) -> None:
        data = {"text/plain": said, "text/html": html(said, share) if said else ""}
        if handle:
            handle[0].update(data, raw=True)
        else:
            handle.append(display(data, raw=True, display_id=True))

    return show
