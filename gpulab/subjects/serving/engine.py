"""An inference engine on a virtual clock. In each step it asks a policy what to do.

A request is admitted, its prompt goes through the model in one step or in pieces (**prefill**), and the last
piece gives the first token of the output; then each step gives one more (**decode**). A request that is
preempted loses its blocks: either its tokens go through the model again (**recompute**), or its keys and
values move to the host and come back (**swap**).

One engine serves on modelled times (`run`), on a real model (`gpulab.serving.model`), and behind HTTP
(`gpulab.serving.http`); in these the clock is the real one. The judge asks it policies that are elsewhere
(`gpulab.serving.decisions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from gpulab.foundation.errors import Message

from . import decision_errors
from .machine import Machine, Work
from .requests import Request


class InvalidDecision(Message, ValueError):
    """A decision that cannot be carried out; the message says in which step and why."""


class NotADecision(InvalidDecision):
    """What a policy returned has not the form of a decision."""


@dataclass(frozen=True)
class Seen:
    """A request as a policy sees it; all counts are tokens, `blocks` those that it holds.

    `left` of the prompt (or, after a recompute, of all its tokens so far) have to go through the model still;
    `made` tokens of output are there, `most` there may be.
    """

    number: int
    arrival: float
    prompt: int
    most: int
    priority: int
    made: int
    left: int
    tokens: int  # in the cache
    blocks: int
    swapped: bool  # on the host
    preempted: int  # how often

    @property
    def decodes(self) -> bool:
        """Does it produce a token in every step that follows?"""
        return self.left == 0


@dataclass(frozen=True)
class State:
    """What a policy is asked about. `waiting` and `running` are in the order in which they came there."""

    step: int
    now: float
    waiting: tuple[Seen, ...]
    running: tuple[Seen, ...]
    free_blocks: int
    free_slots: int
    machine: Machine


@dataclass(frozen=True)
class Decision:
    """What happens in the next step. All numbers are those of requests.

    `preempt` (recompute later) and `swap` (keep on the host) happen first, then `admit`. `prefill` says how
    many tokens of which prompt go through the model; None: all that is left of every running one. Where
    nothing runs, `sleep` is the time at which to ask again if nothing has come; None: at the next arrival.
    """

    admit: tuple[int, ...] = ()
    preempt: tuple[int, ...] = ()
    swap: tuple[int, ...] = ()
    prefill: Mapping[int, int] | None = None
    sleep: float | None = None


Policy = Callable[[State], Decision | Mapping[str, Any]]


@dataclass(frozen=True)
class Step:
    """One step that was carried out: who got a token, and what was processed for it."""

    start: float
    seconds: float
    gave: tuple[int, ...]  # requests that got a token
    ended: tuple[int, ...]
    prefilled: Mapping[int, int]
    decoded: int
    blocks: int  # held at its end, before those of requests that are through come free
    work: Work

    @property
    def stop(self) -> float:
        """When it ends, in seconds."""
        return self.start + self.seconds

    @property
    def tokens(self) -> int:
        """Tokens that went through the model."""
        return self.work.new


@dataclass(eq=False)
class Life:
    """What happened to one request: when it was admitted first, and when each token came.

    `stopped` is set by an executor whose model has said that the text is at its end.
    """

    request: Request
    admitted: float | None = None
    tokens: list[float] = field(default_factory=list)
    preempted: int = 0
    recomputed: int = 0  # tokens that went through the model a second time
    # The state of the moment
    cached: int = 0
    left: int = 0
    swapped: bool = False
    stopped: bool = False
    seen: Seen | None = None  # while it waits nothing changes

    @property
    def made(self) -> int:
        return len(self.tokens)

    @property
    def ended(self) -> bool:
        return self.stopped or self.made == self.request.output


Executor = Callable[[Sequence[tuple[Life, int]], Work], float]


class Engine:
    """Serves requests step by step: `add` what has come, ask a policy about `state`, carry out with `step`.

    `execute` does a step and returns its seconds; by default the machine's times tell them and nothing is
    done. It gets (life, tokens) of every request that works in the step.
    """

    def __init__(self, machine: Machine, execute: Executor | None = None) -> None:
        self.machine = machine
        self.execute = execute or (lambda work_of, work: machine.times.seconds(work))
        self.now = 0.0
        self.waiting: list[Life] = []
        self.running: list[Life] = []
        self.lives: dict[int, Life] = {}
        self.steps: list[Step] = []

    def add(self, request: Request) -> None:
        """A request has come. Raises ValueError for one that can never be served here."""
        needed = self.machine.blocks_for(request.tokens)
        if needed > self.machine.blocks:
            raise ValueError(decision_errors.never_fits(request.number, needed, self.machine.blocks))
        life = Life(request, cached=request.cached, left=request.prompt - request.cached)
        self.lives[request.number] = life
        self.waiting.append(life)

    def drop(self, number: int) -> None:
        """Nobody wants the answer any more: what the request holds comes free."""
        life = self.lives[number]
        for group in (self.waiting, self.running):
            if life in group:
                group.remove(life)

    # ------------------------------------------------------------ what a policy sees

    def state(self) -> State:
        """What there is to decide on."""
        return State(
            len(self.steps),
            self.now,
            tuple(self._seen(life, False) for life in self.waiting),
            tuple(self._seen(life, True) for life in self.running),
            self.machine.blocks - sum(self._holds(life) for life in self.running),
            self.machine.slots - len(self.running),
            self.machine,
        )

    def _seen(self, life: Life, runs: bool) -> Seen:
        if life.seen and not runs:
            return life.seen
        r = life.request
        life.seen = Seen(
            r.number, r.arrival, r.prompt, r.most, r.priority, life.made, life.left, life.cached,
            self._holds(life) if runs else 0, life.swapped, life.preempted,
        )  # fmt: skip
        return life.seen

    def _holds(self, life: Life) -> int:
        tokens = life.request.tokens if self.machine.reserve else life.cached
        return self.machine.blocks_for(tokens)

    # ------------------------------------------------------------ one step

    def step(self, decision: Decision | Mapping[str, Any]) -> Step | None:
        """Carry a decision out; None where it leaves nothing running.

        Raises InvalidDecision, and has changed nothing then.
        """
        try:
            decision = as_decision(decision)
            running, waiting = self._moved(decision)
            chunks = self._chunks(decision, running)
            self._check(running, chunks, decision)
        except InvalidDecision as wrong:
            raise InvalidDecision(decision_errors.at(len(self.steps), str(wrong))) from None
        if not running and not decision.preempt and not decision.swap:
            return None
        moved = self._apply(decision, running, waiting)
        return self._work(chunks, moved)

    def _moved(self, decision: Decision) -> tuple[list[Life], list[Life]]:
        """Which requests run and which wait after the decision."""
        leave = self._named("preempt", decision.preempt, self.running)
        swapped = self._named("swap", decision.swap, self.running)
        for life in swapped:
            if life in leave:
                raise InvalidDecision(decision_errors.both_ways(life.request.number))
        admitted = self._named("admit", decision.admit, self.waiting)
        gone = leave + swapped
        running = [life for life in self.running if life not in gone] + admitted
        # Who was thrown out waits in front: it came before those who have not run.
        waiting = gone + [life for life in self.waiting if life not in admitted]
        return running, waiting

    def _named(self, part: str, numbers: Sequence[int], among: list[Life]) -> list[Life]:
        found = []
        for number in numbers:
            life = self.lives.get(number)
            if life not in among:
                where = self._where(life)
                if part == "admit":
                    raise InvalidDecision(decision_errors.not_waiting(number, where))
                raise InvalidDecision(decision_errors.not_running(part, number, where))
            if life in found:
                raise InvalidDecision(decision_errors.twice(part, number))
            assert life is not None
            found.append(life)
        return found

    def _where(self, life: Life | None) -> str:
        if life is None:
            return decision_errors.UNKNOWN
        if life.ended:
            return decision_errors.OVER
        return decision_errors.RUNS if life in self.running else decision_errors.WAITS

    def _chunks(self, decision: Decision, running: list[Life]) -> dict[int, int]:
        """Tokens of prompts by request."""
        left = {life.request.number: life.left for life in running if life.left}
        if decision.prefill is None:
            return left
        chunks = {}
        for number, tokens in decision.prefill.items():
            if number not in {life.request.number for life in running}:
                where = self._where(self.lives.get(number))
                raise InvalidDecision(decision_errors.not_running("prefill", number, where))
            if tokens > left.get(number, 0):
                raise InvalidDecision(decision_errors.chunk_too_long(number, tokens, left.get(number, 0)))
            if tokens:
                chunks[number] = tokens
        return chunks

    def _check(self, running: list[Life], chunks: Mapping[int, int], decision: Decision) -> None:
        machine = self.machine
        if len(running) > machine.slots:
            raise InvalidDecision(decision_errors.no_slot(len(running), machine.slots))
        needed = sum(self._needs(life, chunks) for life in running)
        if needed > machine.blocks:
            raise InvalidDecision(
                decision_errors.no_blocks(needed, machine.blocks, len(running), machine.reserve)
            )
        tokens = sum(chunks.values()) + sum(life.left == 0 for life in running)
        if machine.step_tokens is not None and tokens > machine.step_tokens:
            raise InvalidDecision(decision_errors.over_budget(tokens, machine.step_tokens))
        if running and not tokens:
            raise InvalidDecision(decision_errors.nothing_moves(len(self.waiting), len(running)))
        out = [life for life in self.waiting if life.swapped and life not in running]
        out += [self.lives[number] for number in decision.swap]
        blocks = sum(machine.blocks_for(life.cached) for life in out)
        if decision.swap and blocks > machine.host:
            raise InvalidDecision(decision_errors.no_host_room(blocks, machine.host))

    def _needs(self, life: Life, chunks: Mapping[int, int]) -> int:
        """Blocks that a request holds at the end of the step."""
        if self.machine.reserve:
            return self.machine.blocks_for(life.request.tokens)
        new = chunks.get(life.request.number, 0) if life.left else 1
        return self.machine.blocks_for(life.cached + new)

    def _apply(self, decision: Decision, running: list[Life], waiting: list[Life]) -> int:
        """Let requests change places; returns the tokens that move between device and host."""
        moved = 0
        for number in (*decision.preempt, *decision.swap):
            life = self.lives[number]
            life.preempted, life.seen = life.preempted + 1, None
            if number in decision.swap:
                life.swapped, moved = True, moved + life.cached
            else:
                life.recomputed += life.cached
                life.cached, life.left = 0, life.request.prompt + life.made
        for number in decision.admit:
            life = self.lives[number]
            if life.admitted is None:
                life.admitted = self.now
            if life.swapped:
                life.swapped, moved = False, moved + life.cached
        self.running, self.waiting = running, waiting
        return moved

    def _work(self, chunks: Mapping[int, int], moved: int) -> Step:
        """Do the step and give out its tokens."""
        work, busy = Work(moved=moved), list[tuple[Life, int]]()
        for life in self.running:
            new = chunks.get(life.request.number, 0) if life.left else 1
            if new:
                busy.append((life, new))
                pairs = new * life.cached + new * (new + 1) // 2
                work += Work(new, pairs, life.cached)
        start, seconds = self.now, self.execute(busy, work)
        self.now += seconds
        gave = []
        for life, new in busy:
            life.cached += new
            life.left = max(0, life.left - new)
            if not life.left:
                life.tokens.append(self.now)
                gave.append(life.request.number)
        held = sum(self._holds(life) for life in self.running)
        ended = tuple(life.request.number for life in self.running if life.ended)
        self.running = [life for life in self.running if not life.ended]
        decoded = work.new - sum(chunks.values())
        step = Step(start, seconds, tuple(gave), ended, dict(chunks), decoded, held, work)
        self.steps.append(step)
        return step

    def result(self) -> Run:
        """What happened so far."""
        return Run(self.machine, tuple(self.lives.values()), tuple(self.steps))


@dataclass(frozen=True)
class Run:
    """What an engine did: the lives of its requests, in the order of their arrival, and its steps."""

    machine: Machine
    lives: tuple[Life, ...]
    steps: tuple[Step, ...]

    @property
    def end(self) -> float:
        """When the last step ends, in seconds; where none was seen, when the last token came."""
        if self.steps:
            return self.steps[-1].stop
        return max((life.tokens[-1] for life in self.lives if life.tokens), default=0.0)


class Service:
    """A trace of requests on a virtual clock. It says when a decision is `due`; `decide` carries it out.

    After `limit` decisions `decide` raises InvalidDecision.
    """

    def __init__(
        self,
        machine: Machine,
        requests: Iterable[Request],
        execute: Executor | None = None,
        limit: int = 200_000,
    ) -> None:
        self.engine = Engine(machine, execute)
        self.limit, self.decisions = limit, 0
        self._coming = sorted(requests, key=lambda r: (r.arrival, r.number), reverse=True)

    @property
    def left(self) -> int:
        """Requests that are not through."""
        return len(self._coming) + len(self.engine.waiting) + len(self.engine.running)

    def due(self) -> bool:
        """Let come who has arrived by now; False where all requests are through. Raises InvalidDecision."""
        engine, coming = self.engine, self._coming
        if not self.left:
            return False
        if not (engine.waiting or engine.running):
            engine.now = max(engine.now, coming[-1].arrival)
        while coming and coming[-1].arrival <= engine.now:
            engine.add(coming.pop())
        if self.decisions >= self.limit:
            raise InvalidDecision(decision_errors.no_end(self.limit, self.left))
        return True

    def decide(self, decision: Decision | Mapping[str, Any]) -> tuple[int, ...]:
        """Carry a decision out; the requests that are through after it. Raises InvalidDecision."""
        decision, self.decisions = as_decision(decision), self.decisions + 1
        step = self.engine.step(decision)
        if step is None:
            self._sleep(decision.sleep)
        return step.ended if step else ()

    def _sleep(self, until: float | None) -> None:
        """Nothing runs: the clock goes on to the next arrival, or to when the policy wants to be asked."""
        engine = self.engine
        arrival = self._coming[-1].arrival if self._coming else None
        times = [time for time in (until, arrival) if time is not None and time > engine.now]
        if not times:
            said = decision_errors.nothing_moves(len(engine.waiting), 0)
            raise InvalidDecision(decision_errors.at(len(engine.steps), said))
        engine.now = min(times)


def run(
    machine: Machine,
    requests: Iterable[Request],
    policy: Policy,
    *,
    execute: Executor | None = None,
    limit: int = 200_000,
) -> Run:
    """Serve all `requests` on `machine` as `policy` decides, on a virtual clock.

    With `execute`, a real model computes the tokens. Raises InvalidDecision for a decision that cannot be
    carried out, and after `limit` decisions.

    >>> finished = run(Machine(slots=8, blocks=1000), traces.alternating(4), policies.static)
    >>> len(finished.lives)
    4
    """
    service = Service(machine, requests, execute, limit)
    while service.due():
        service.decide(policy(service.engine.state()))
    return service.engine.result()


# ---------------------------------------------------------------- decisions


PARTS = ("admit", "preempt", "swap", "prefill", "sleep")


def as_decision(told: Decision | Mapping[str, Any]) -> Decision:
    """What a policy returned as a Decision: its own, or a dictionary with some of its parts.

    Numbers of requests as keys may be text, as JSON has them. Raises NotADecision for anything else.
    """
    if isinstance(told, Decision):
        told = {part: getattr(told, part) for part in PARTS}
    if not isinstance(told, Mapping):
        raise NotADecision(decision_errors.not_a_decision(type(told).__name__))
    for name in told:
        if name not in PARTS:
            raise NotADecision(decision_errors.unknown_part(str(name)))
    admit, preempt, swap = (_numbers(part, told.get(part)) for part in PARTS[:3])
    return Decision(admit, preempt, swap, _prefill(told.get("prefill")), _time(told.get("sleep")))


def _numbers(part: str, value: Any) -> tuple[int, ...]:
    if value is None:
        return ()
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise NotADecision(decision_errors.not_numbers(part, value))
    found = []
    for number in value:
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise NotADecision(decision_errors.not_numbers(part, value))
        found.append(int(number))
    return tuple(found)


def _prefill(value: Any) -> dict[int, int] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise NotADecision(decision_errors.not_numbers("prefill", value))
    chunks = {}
    for number, tokens in value.items():
        try:
            number = int(number)
        except (TypeError, ValueError):
            raise NotADecision(decision_errors.not_numbers("prefill", value)) from None
        if isinstance(tokens, bool) or not hasattr(tokens, "__index__") or int(tokens) < 0:
            raise NotADecision(decision_errors.bad_chunk(number, tokens))
        chunks[number] = int(tokens)
    return chunks


def _time(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise NotADecision(decision_errors.bad_sleep(value))
    return float(value)
