"""The network of ranks as one process: it delivers and counts messages, and sees which ranks wait for which.

Ranks reach one another through nothing else. A message is delivered when its receiver waits for it, so what
is counted is all that a rank could have learnt from others. A send is complete when it is received, as with
gloo and NCCL; ranks that all send first wait for one another. Collectives are computed here, and counted as
the messages of the algorithms in `collectives`.

Whoever sits at the other end of a connection is not believed: frames are checked, time is limited, and so is
all that a rank can make this process keep. Of a frame's head only the few numbers that are needed stay. No
message and no call is free, even with nothing in it: that it comes tells something, and so does when it
comes. Imports no PyTorch, and unpickles nothing.
"""

from __future__ import annotations

import itertools
import selectors
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from . import collectives, words
from .collectives import CannotReduce, Contribution
from .frames import LARGEST_PAYLOAD, BadFrame, Head, Reader, encode
from .traffic import Traffic

MOST_MESSAGES = 50_000  # of one run, collectives with all that theirs take
MOST_CALLS = 2 * MOST_MESSAGES  # … by all ranks: each message has a sender and a receiver
MOST_UNDER_WAY = 4096  # calls of one rank that it has not waited for
MOST_BYTES = 256 << 20  # delivered in one run
MOST_PENDING = 32 << 20  # bytes that were sent and that nobody has fetched yet, of all ranks together
LARGEST_HEAD = 32 << 10  # a rank's: an error's text is the longest thing in one
EMPTY_BYTES = 1  # that there is a message, and its tag, tell something, too: they are counted
TAG_BYTES = 8
LONGEST_NAME = 40  # characters that are kept of an operation or a type
PATIENCE = 0.5  # seconds without a word until ranks that wait are believed to wait forever
GRACE = 3.0  # seconds for the others to come to an end when one has failed


@dataclass(frozen=True)
class Task:
    """What ranks are asked: a head and a payload for each, and the collectives that they may use.

    Of what a rank returns at most `most` bytes are kept: a right result has no more.
    """

    given: tuple[tuple[Head, bytes], ...]
    calls: frozenset[str] = frozenset()
    most: int = LARGEST_PAYLOAD


@dataclass(frozen=True)
class Trouble:
    """Why a run came to no result. `rank` is the one to look at, `line` the line of its code, 0 for none, in
    the `file` that it has named, if it has.

    `kind` of ``error``: the rank raised an exception, which `error` names and `text` quotes. That it has no
    function to call is called ``missing``.
    """

    kind: Literal[
        "error", "died", "deadlock", "mismatch", "refused", "too long", "too much", "left", "forged"
    ]
    text: str
    rank: int = 0
    line: int = 0
    error: str = ""
    file: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a run ended: the head and the payload that each rank returned, or the trouble; and the traffic."""

    returned: tuple[tuple[Head, bytes], ...] = ()
    traffic: Traffic = field(default_factory=lambda: Traffic(0))
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    """What the head of a collective says, checked. All but the pieces must be the same on all ranks."""

    name: str
    operation: str
    dtype: str
    root: int  # place in the group
    group: tuple[int, ...]
    size: int  # bytes that the result should have
    cuts: tuple[int, ...]
    wants: tuple[int, ...]
    row: int

    @property
    def alike(self) -> tuple[str, str, str, int]:
        return self.name, self.operation, self.dtype, self.root

    def __str__(self) -> str:
        if self.name in ("all_reduce", "reduce", "reduce_scatter"):
            return f"{self.name} ({self.operation}, {self.dtype})"
        return f"{self.name} from {self.root}" if self.name in ("broadcast", "scatter") else self.name


@dataclass(slots=True)
class _Request:
    """A send, a receive or a part in a collective. It is done when `after` says at which step."""

    kind: Literal["send", "recv", "collective"]
    rank: int
    clock: int
    line: int
    peer: int = 0
    data: bytes = b""
    size: int = 0
    tag: int = 0
    after: int | None = None
    call: _Call | None = None

    @property
    def collective(self) -> _Call:
        """The call that it is a part in."""
        assert self.call is not None
        return self.call


@dataclass
class _Rank:
    connection: socket.socket
    reader: Reader = field(default_factory=lambda: Reader(LARGEST_HEAD))
    out: bytearray = field(default_factory=bytearray)
    state: Literal["idle", "comes", "runs", "waits", "gone"] = "idle"
    request: int = 0  # that it waits for
    last: int = 0  # the number of its latest call
    file: str = ""
    line: int = 0
    alone: bool = True  # no other thread of it goes on while it waits
    clock: int = 0
    requests: dict[int, _Request] = field(default_factory=dict)
    returned: tuple[Head, bytes] | None = None


class _Ends(Exception):
    """A run cannot go on."""

    def __init__(self, trouble: Trouble) -> None:
        self.trouble = trouble


class Network:
    """Joins those at the other ends of `connections`, in the order of ranks.

    Several runs, one after the other, may use the same; a run may have fewer ranks.
    """

    def __init__(self, connections: Sequence[socket.socket]) -> None:
        self._ranks = [_Rank(connection) for connection in connections]
        self._show: Callable[[int, str], None] | None = None
        self._selector = selectors.DefaultSelector()
        for number, rank in enumerate(self._ranks):
            rank.connection.setblocking(False)
            self._selector.register(rank.connection, selectors.EVENT_READ, number)

    def close(self) -> None:
        """Close all connections: who is at the other end ends."""
        self._selector.close()
        for rank in self._ranks:
            rank.connection.close()

    @property
    def whole(self) -> bool:
        """Whether everybody is ready for another run."""
        return all(rank.state == "idle" for rank in self._ranks)

    def tell(self, head: Head) -> None:
        """Say something to all that are there."""
        for rank in self._ranks:
            if rank.state != "gone":
                self._say(rank, head)

    def meet(self, exercise: str, seconds: float) -> Trouble | None:
        """Wait until all say that they are ready for an exercise. Returns what keeps one away, or None."""
        self._world, self._aborting = self._ranks, False
        self._exercise, self._absent = exercise, False
        for rank in self._ranks:
            rank.state = "gone" if rank.state == "gone" else "comes"
        until = time.monotonic() + seconds
        try:
            while any(rank.state == "comes" for rank in self._ranks):
                if time.monotonic() > until:
                    return Trouble("too long", words.never_ready(seconds))
                self._listen(0.1)
        except _Ends as stop:
            return stop.trouble
        gone = [number for number, rank in enumerate(self._ranks) if rank.state == "gone"]
        if gone:
            return Trouble("died", words.died(gone[0], len(self._ranks)), gone[0])
        return Trouble("error", "", error="missing") if self._absent else None

    def run(
        self,
        task: Task,
        seconds: float,
        show: Callable[[int, str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Outcome:
        """Give each rank its task and serve them until all have returned, or something goes wrong.

        They have `seconds` by `clock`. `show` gets the lines that ranks print, with the rank.
        """
        self._begin(task, show)
        until, ends, left = clock() + seconds, None, seconds
        trouble: Trouble | None = None
        while any(rank.state in ("runs", "waits") for rank in self._world):
            now = time.monotonic()
            if ends is not None and now > ends:
                break
            try:
                if ends is None and (left := until - clock()) < 0:
                    raise _Ends(Trouble("too long", words.too_long(seconds, self._where())))
                stuck = ends is None and not any(map(_goes_on, self._world))
                heard = self._listen(min(PATIENCE, max(left, 0.01)) if stuck or ends else 0.1)
                if stuck and not heard:
                    raise _Ends(self._deadlock())
            except _Ends as stop:
                if trouble is None:
                    trouble, ends = stop.trouble, time.monotonic() + GRACE
                self._aborting = True
                self._answer_all()
        if self._errors:
            first = self._errors[min(self._errors)]
            if trouble is None or trouble.kind == "error":
                trouble = first
        trouble = trouble or self._left()
        if trouble:
            trouble = replace(trouble, file=self._ranks[trouble.rank].file)
        if trouble:
            return Outcome((), self._traffic, trouble)
        return Outcome(tuple(rank.returned or ({}, b"") for rank in self._world), self._traffic)

    def _begin(self, task: Task, show: Callable[[int, str], None] | None) -> None:
        self._world = self._ranks[: len(task.given)]
        self._task, self._show = task, show
        self._traffic = Traffic(len(self._world))
        self._errors: dict[int, Trouble] = {}
        self._aborting = False
        # By sender, receiver and tag: sends that nobody has taken, or receives for which nothing has come.
        self._queues: dict[tuple[int, int, int], deque[_Request]] = {}
        self._counted: Counter[tuple[int, tuple[int, ...]]] = Counter()  # collectives of a rank in a group
        self._meetings: dict[tuple[tuple[int, ...], int], list[_Request]] = {}
        self._posted = self._pending = 0
        for number, (rank, (head, payload)) in enumerate(zip(self._world, task.given, strict=True)):
            rank.clock, rank.requests, rank.returned, rank.line = 0, {}, None, 0
            if rank.state != "gone":
                rank.state = "runs"
                self._say(rank, {**head, "op": "task", "rank": number, "size": len(task.given)}, payload)
            else:
                self._errors[number] = Trouble("died", words.died(number, len(task.given)), number)

    # ------------------------------------------------------------ connections

    def _listen(self, seconds: float) -> bool:
        """Read and write what can be; says whether anything came."""
        heard, stops = False, []
        for key, events in self._selector.select(seconds):
            rank = self._ranks[key.data]
            if events & selectors.EVENT_WRITE:
                self._flush(rank)
            if events & selectors.EVENT_READ:
                heard = True
                stops += self._take(key.data, rank)
        if stops:
            raise stops[0]
        return heard

    def _take(self, number: int, rank: _Rank) -> list[_Ends]:
        """Hear all that a rank has said; what ends the run ends it when all has been heard."""
        stops: list[_Ends] = []
        try:
            data = rank.connection.recv(1 << 20)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._gone(rank)
            if rank in self._world:
                stops.append(_Ends(Trouble("died", words.died(number, len(self._world)), number)))
            return stops
        try:
            for head, payload in rank.reader.feed(data):
                try:
                    self._hear(number, head, payload)
                except _Ends as stop:
                    stops.append(stop)
                    self._aborting = True
        except (BadFrame, KeyError, TypeError) as error:
            self._gone(rank)
            stops.append(_Ends(Trouble("forged", words.forged(number, error), number)))
        return stops

    def _gone(self, rank: _Rank) -> None:
        rank.state = "gone"
        self._selector.unregister(rank.connection)

    def _say(self, rank: _Rank, head: Head, payload: bytes = b"") -> None:
        rank.out += encode(head, payload)
        self._flush(rank)

    def _flush(self, rank: _Rank) -> None:
        try:
            while rank.out:
                del rank.out[: rank.connection.send(memoryview(rank.out)[: 1 << 20].tobytes())]
        except BlockingIOError:
            pass
        except OSError:
            rank.out.clear()  # it is gone, which reading tells
        if rank.state != "gone":
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if rank.out else 0)
            self._selector.modify(rank.connection, events, self._selector.get_key(rank.connection).data)

    # ------------------------------------------------------------ what ranks say

    def _hear(self, number: int, head: Head, payload: bytes) -> None:
        rank = self._ranks[number]
        op = head["op"]
        if op == "line":
            if self._show is not None:
                self._show(number, str(head["text"])[:2000])
            return
        if op == "ready" and rank.state == "comes" and head["exercise"] == self._exercise:
            rank.state, rank.file = "idle", str(head["file"])[:200]
            self._absent = self._absent or head["absent"] is True
            return
        if rank not in self._world or rank.state not in ("runs", "waits"):
            raise BadFrame("speaks without being asked")
        match op:
            case "result":
                rank.state, rank.returned = "idle", (head, payload[: self._task.most])
            case "error":
                rank.state = "idle"
                if not self._aborting or head["kind"] != "Aborted":
                    self._failed(number, head)
            case "send" | "recv" | "collective":
                if not self._aborting:
                    self._post(number, head, payload)
            case "wait" | "test":
                if rank.out:
                    raise BadFrame("asks again before it has heard the answer")
                rank.request, rank.line = _whole(head["id"]), _whole(head.get("line", 0))
                if not self._aborting and rank.request not in rank.requests:
                    raise BadFrame("waits for nothing")
                rank.state, rank.alone = "waits", head.get("alone") is not False
                self._answer(rank)
                if op == "test" and rank.state == "waits":
                    rank.state = "runs"
                    self._say(rank, {"op": "not yet"})
            case _:
                raise BadFrame("an operation that is none")

    def _failed(self, number: int, head: Head) -> None:
        kind, text, line = str(head["kind"])[:100], str(head["text"])[:2000], _whole(head.get("line", 0))
        self._errors[number] = Trouble("error", text, number, line, kind)
        raise _Ends(self._errors[number])

    def _post(self, number: int, head: Head, payload: bytes) -> None:
        rank, size = self._ranks[number], len(self._world)
        call = _whole(head["id"])
        if call <= rank.last:
            raise BadFrame(f"call {call} has the number of an earlier one")
        rank.last = call
        self._posted += 1
        self._pending += len(payload)
        self._not_too_much(number)
        line = _whole(head.get("line", 0))
        request = _Request(head["op"], number, rank.clock, line, data=payload, size=len(payload))
        rank.requests[call] = request
        if request.kind == "collective":
            request.call = self._asked(request, head)
            self._join(request)
            return
        request.peer, request.tag = _whole(head["peer"], size - 1), _whole(head.get("tag", 0), 2**63)
        if request.peer == number:
            raise BadFrame("a message to itself")
        if request.kind == "recv":
            request.size = _whole(head["bytes"])
        self._match(request)

    def _not_too_much(self, number: int) -> None:
        """Raises what ends the run where ranks have said more than a run may, the last of them `number`."""
        traffic = self._traffic
        if len(self._ranks[number].requests) >= MOST_UNDER_WAY:
            raise _Ends(Trouble("too much", words.too_many_under_way(number, MOST_UNDER_WAY), number))
        much = traffic.messages > MOST_MESSAGES or self._posted > MOST_CALLS
        if much or traffic["bytes"] > MOST_BYTES or self._pending > MOST_PENDING:
            raise _Ends(Trouble("too much", words.too_much(MOST_MESSAGES, MOST_BYTES, MOST_PENDING), number))

    def _match(self, request: _Request) -> None:
        """Bring a send and a receive together: the earliest of each between two ranks with one tag."""
        link = (request.rank, request.peer) if request.kind == "send" else (request.peer, request.rank)
        queue = self._queues.setdefault((*link, request.tag), deque())
        if not queue or queue[0].kind == request.kind:
            queue.append(request)
            return
        other = queue.popleft()
        if not queue:
            del self._queues[(*link, request.tag)]
        send, recv = (request, other) if request.kind == "send" else (other, request)
        if send.size != recv.size:
            text = words.sizes(send.rank, send.size, recv.rank, recv.size)
            raise _Ends(Trouble("mismatch", text, recv.rank, recv.line))
        step = max(send.clock, recv.clock) + 1
        self._count(send.rank, recv.rank, send.size, step, "send", send.tag)
        recv.data, send.data = send.data, b""
        send.after = recv.after = step
        self._answer_all()

    def _count(self, sender: int, receiver: int, size: int, step: int, operation: str, tag: int = 0) -> None:
        charged = max(size, EMPTY_BYTES) + (TAG_BYTES if tag else 0)
        self._traffic.add(sender, receiver, charged, step, operation)

    # ------------------------------------------------------------ collectives

    def _asked(self, request: _Request, head: Head) -> _Call:
        """The head of a collective, checked: of its texts and lists nothing else is kept."""
        name, size = head["name"], len(self._world)
        if name not in collectives.NAMES:
            raise BadFrame("a collective that is none")
        if name not in self._task.calls:
            text = words.not_listed(request.rank, name, self._task.calls)
            raise _Ends(Trouble("refused", text, request.rank, request.line))
        group = tuple(_whole(r, size - 1) for r in _list(head["ranks"], size))
        cuts = tuple(_whole(n) for n in _list(head["cuts"], size))
        wants = tuple(_whole(n) for n in _list(head.get("wants", []), size))
        if request.rank not in group or len(set(group)) < len(group):
            raise BadFrame("a group that is none")
        if cuts and (len(cuts) != len(group) or sum(cuts) != request.size):
            raise BadFrame("pieces that do not fit")
        if wants and len(wants) != len(group):
            raise BadFrame("pieces that do not fit")
        operation, dtype = head["operation"], head["dtype"]
        if not isinstance(operation, str) or not isinstance(dtype, str):
            raise BadFrame("a type that is none")
        return _Call(
            name, operation[:LONGEST_NAME], dtype[:LONGEST_NAME], _whole(head["root"], len(group) - 1), group,
            _whole(head["bytes"]), cuts, wants, _whole(head.get("row", 0)),
        )  # fmt: skip

    def _join(self, request: _Request) -> None:
        call, group = request.collective, request.collective.group
        place = self._counted[request.rank, group]
        self._counted[request.rank, group] += 1
        meeting = self._meetings.setdefault((group, place), [])
        meeting.append(request)
        first = meeting[0]
        if first.collective.alike != call.alike:
            text = words.other_call(first.rank, str(first.call), request.rank, str(call), place + 1)
            raise _Ends(Trouble("mismatch", text, request.rank, request.line))
        if len(meeting) == len(group):
            del self._meetings[group, place]
            self._complete(group, sorted(meeting, key=lambda r: group.index(r.rank)))

    def _complete(self, ranks: tuple[int, ...], meeting: list[_Request]) -> None:
        """All have come: everybody gets the result."""
        first, call = meeting[0], meeting[0].collective
        given = [Contribution(r.data, r.collective.cuts) for r in meeting]
        if call.name == "all_to_all":
            self._same_pieces(meeting)
        try:
            results = collectives.results(call.name, given, call.root, call.operation, call.dtype)
            sent = collectives.messages(call.name, given, call.root, collectives.itemsize(call.dtype))
        except CannotReduce as error:
            text = words.cannot_reduce(call.name, str(error))
            raise _Ends(Trouble("refused", text, first.rank, first.line)) from None
        except (ValueError, IndexError):
            results, sent = [], []
        if sum(map(len, results)) > MOST_PENDING or any(len(x) > LARGEST_PAYLOAD for x in results):
            text = words.too_much(MOST_MESSAGES, MOST_BYTES, MOST_PENDING)
            raise _Ends(Trouble("too much", text, first.rank))
        wrong = any(len(x) != r.collective.size for x, r in zip(results, meeting, strict=bool(results)))
        if wrong or not results:
            sizes = [len(r.data) for r in meeting]
            text = words.other_sizes(call.name, dict(zip(ranks, sizes, strict=True)))
            raise _Ends(Trouble("mismatch", text, first.rank, first.line))
        begin = max(r.clock for r in meeting)
        for message in sent:
            step = begin + message.step + 1
            self._count(ranks[message.sender], ranks[message.receiver], message.bytes, step, call.name)
        if len(ranks) > 1 or len(self._world) == 1:  # a rank by itself calls nobody
            self._traffic.calls[call.name, max(len(g.data) for g in given)] += 1
        after = begin + collectives.steps(sent)
        for request, result in zip(meeting, results, strict=True):
            self._pending += len(result) - len(request.data)
            request.data, request.after = result, after
        self._answer_all()

    def _same_pieces(self, meeting: list[_Request]) -> None:
        """Does each rank of an all-to-all expect what each other sends to it? `wants` may be left out."""
        for (a, sender), (b, receiver) in itertools.product(enumerate(meeting), repeat=2):
            sent, wanted = sender.collective.cuts, receiver.collective.wants
            if sent and wanted and sent[b] != wanted[a]:
                row = sender.collective.row
                text = words.other_piece(sender.rank, sent[b], receiver.rank, wanted[a], row)
                raise _Ends(Trouble("mismatch", text, receiver.rank, receiver.line))

    # ------------------------------------------------------- ranks that wait

    def _answer_all(self) -> None:
        for rank in self._world:
            self._answer(rank)

    def _answer(self, rank: _Rank) -> None:
        """Let a rank go on whose request is done."""
        if rank.state != "waits":
            return
        if self._aborting:
            rank.state = "runs"
            self._say(rank, {"op": "abort"})
            return
        request = rank.requests[rank.request]
        if request.after is not None:
            del rank.requests[rank.request]
            rank.clock = max(rank.clock, request.after)
            rank.state = "runs"
            self._pending -= len(request.data)
            self._say(rank, {"op": "ok"}, request.data)

    def _where(self) -> list[str]:
        """One line a rank: what it does."""
        lines = []
        for number, rank in enumerate(self._world):
            request = rank.requests.get(rank.request) if rank.state == "waits" else None
            if request is None:
                done = {"idle": words.done, "gone": words.gone}.get(rank.state, words.runs)
                lines.append(done(number))
            elif request.kind == "collective":
                call = request.collective
                place = self._counted[number, call.group] - 1
                came = {r.rank for r in self._meetings.get((call.group, place), [])}
                missing = [r for r in call.group if r not in came]
                lines.append(words.waits_in(number, rank.line, call.name, missing))
            else:
                lines.append(words.waits_for(number, rank.line, request.peer, request.kind, request.tag))
        return lines

    def _deadlock(self) -> Trouble:
        first = next(n for n, rank in enumerate(self._world) if rank.state == "waits")
        return Trouble("deadlock", words.deadlock(self._where()), first, self._world[first].line)

    def _left(self) -> Trouble | None:
        """All have returned: is there a message that nobody took, or that never came, or a call that nobody
        waited for?"""
        for (sender, receiver, _), queue in self._queues.items():
            first = queue[0]
            text = words.left(first.kind, sender, receiver, len(queue))
            return Trouble("left", text, first.rank, first.line)
        for first, *others in self._meetings.values():
            text = words.left_in(first.collective.name, [first.rank, *(r.rank for r in others)])
            return Trouble("left", text, first.rank, first.line)
        for request in (first for each in self._world for first in each.requests.values()):
            name = request.collective.name if request.kind == "collective" else f"i{request.kind}"
            text = words.never_waited_for(request.rank, name, request.line)
            return Trouble("left", text, request.rank, request.line)
        return None


def _goes_on(rank: _Rank) -> bool:
    """Whether a rank may say something without being answered first."""
    return rank.state == "runs" or bool(rank.out) or (rank.state == "waits" and not rank.alone)


def _whole(value: Any, most: int = 2**53) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise BadFrame("a number that is none")
    return value


def _list(value: Any, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise BadFrame("a list that is none")
    return value
