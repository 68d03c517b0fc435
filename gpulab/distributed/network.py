"""The network of ranks as one process: it delivers what they send, counts it, and sees who waits for whom.

Ranks reach one another through nothing else. A message is delivered when its receiver waits for it, so what
is counted is all that a rank could have learnt from others. A send is complete when it is received, as with
gloo and NCCL; ranks that all send first wait for one another. Collectives are computed here, and counted as
the messages of the algorithms in `collectives`.

Whoever sits at the other end of a connection is not believed: frames are checked, memory and time are
limited. Imports no PyTorch, and unpickles nothing.
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

MOST_MESSAGES = 50_000  # of one run, collectives with all that theirs take
MOST_BYTES = 1 << 30  # delivered in one run
MOST_PENDING = 256 << 20  # bytes that were sent and not taken yet
EMPTY_BYTES = 1  # that there is a message, and its tag, tell something, too: they are counted
TAG_BYTES = 8
PATIENCE = 0.5  # seconds without a word until ranks that wait are believed to wait forever
GRACE = 3.0  # seconds for the others to come to an end when one has failed


@dataclass(frozen=True)
class Task:
    """What ranks are asked: a head and a payload for each, and the collectives that they may use."""

    given: tuple[tuple[Head, bytes], ...]
    calls: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Transfer:
    """One message.

    `step` is its place in the longest chain of messages that waited for one another, from 1. `start` and
    `end` are seconds since the run began: when it was sent, and when it had a receiver.
    """

    sender: int
    receiver: int
    bytes: int
    step: int
    operation: str
    start: float = 0.0
    end: float = 0.0


@dataclass(frozen=True)
class Traffic:
    """All messages of a run, and how often each collective was called (once for the whole group)."""

    ranks: int
    transfers: tuple[Transfer, ...] = ()
    calls: dict[str, int] = field(default_factory=dict)

    @property
    def links(self) -> dict[tuple[int, int], int]:
        """Bytes from one rank to another."""
        found: Counter[tuple[int, int]] = Counter()
        for t in self.transfers:
            found[t.sender, t.receiver] += t.bytes
        return dict(found)

    @property
    def sent(self) -> list[int]:
        """Bytes that each rank sent."""
        return [sum(n for (a, _), n in self.links.items() if a == rank) for rank in range(self.ranks)]

    @property
    def received(self) -> list[int]:
        """Bytes that each rank received."""
        return [sum(n for (_, b), n in self.links.items() if b == rank) for rank in range(self.ranks)]

    def __getitem__(self, metric: str) -> float:
        """A count of `COUNTS`, or ``calls of NAME``. Raises KeyError for any other."""
        if metric.startswith("calls of "):
            return self.calls.get(metric.removeprefix("calls of "), 0)
        return COUNTS[metric](self)


COUNTS: dict[str, Callable[[Traffic], float]] = {
    "bytes": lambda t: sum(x.bytes for x in t.transfers),
    "busiest sender": lambda t: max(t.sent, default=0),
    "busiest receiver": lambda t: max(t.received, default=0),
    "messages": lambda t: len(t.transfers),
    "steps": lambda t: max((x.step for x in t.transfers), default=0),
}


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


@dataclass
class _Request:
    """A send, a receive or a part in a collective. It is done when `after` says at which step."""

    kind: Literal["send", "recv", "collective"]
    rank: int
    clock: int
    at: float
    peer: int = 0
    data: bytes = b""
    size: int = 0
    tag: int = 0
    after: int | None = None
    call: Head = field(default_factory=dict)
    group: tuple[int, ...] = ()


@dataclass
class _Rank:
    connection: socket.socket
    reader: Reader = field(default_factory=Reader)
    out: bytearray = field(default_factory=bytearray)
    state: Literal["idle", "comes", "runs", "waits", "gone"] = "idle"
    request: int = 0  # that it waits for
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

    def run(self, task: Task, seconds: float, show: Callable[[int, str], None] | None = None) -> Outcome:
        """Give each rank its task and serve them until all have returned, or something goes wrong.

        `show` gets the lines that ranks print, with the rank.
        """
        self._begin(task, show)
        until, ends = time.monotonic() + seconds, None
        trouble: Trouble | None = None
        while any(rank.state in ("runs", "waits") for rank in self._world):
            now = time.monotonic()
            if ends is not None and now > ends:
                break
            try:
                if ends is None and now > until:
                    raise _Ends(Trouble("too long", words.too_long(seconds, self._where())))
                stuck = ends is None and not any(map(_goes_on, self._world))
                heard = self._listen(min(PATIENCE, max(until - now, 0.01)) if stuck or ends else 0.1)
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
        traffic = Traffic(len(self._world), tuple(self._transfers), dict(self._calls))
        if trouble:
            return Outcome((), traffic, trouble)
        return Outcome(tuple(rank.returned or ({}, b"") for rank in self._world), traffic)

    def _begin(self, task: Task, show: Callable[[int, str], None] | None) -> None:
        self._world = self._ranks[: len(task.given)]
        self._task, self._show, self._began = task, show, time.monotonic()
        self._transfers: list[Transfer] = []
        self._calls: Counter[str] = Counter()
        self._errors: dict[int, Trouble] = {}
        self._aborting = False
        self._queues: dict[tuple[str, int, int, int], deque[_Request]] = {}
        self._counted: Counter[tuple[int, tuple[int, ...]]] = Counter()  # collectives of a rank in a group
        self._meetings: dict[tuple[tuple[int, ...], int], list[_Request]] = {}
        self._bytes = self._pending = 0
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
                rank.state, rank.returned = "idle", (head, payload)
            case "error":
                rank.state = "idle"
                if not self._aborting or head["kind"] != "Aborted":
                    self._failed(number, head)
            case "send" | "recv" | "collective":
                if not self._aborting:
                    self._post(number, head, payload)
            case "wait" | "test":
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
        self._pending += len(payload)
        if len(self._transfers) > MOST_MESSAGES or self._bytes > MOST_BYTES or self._pending > MOST_PENDING:
            raise _Ends(Trouble("too much", words.too_much(MOST_MESSAGES, MOST_BYTES), number))
        if len(rank.requests) > MOST_MESSAGES:
            raise _Ends(Trouble("too much", words.too_much(MOST_MESSAGES, MOST_BYTES), number))
        request = _Request(head["op"], number, rank.clock, time.monotonic() - self._began, call=head)
        rank.requests[_whole(head["id"])] = request
        if head["op"] == "collective":
            self._join(request, payload)
            return
        request.peer, request.tag = _whole(head["peer"], size - 1), _whole(head.get("tag", 0), 2**63)
        if request.peer == number:
            raise BadFrame("a message to itself")
        request.data, request.size = payload, len(payload)
        if head["op"] == "recv":
            request.size = _whole(head["bytes"])
        self._match(request)

    def _match(self, request: _Request) -> None:
        """Bring a send and a receive together: the earliest of each between two ranks with one tag."""
        link = (request.rank, request.peer) if request.kind == "send" else (request.peer, request.rank)
        key = (*link, request.tag)
        other = self._queues.setdefault(("recv" if request.kind == "send" else "send", *key), deque())
        if not other:
            self._queues.setdefault((request.kind, *key), deque()).append(request)
            return
        pair = {request.kind: request, "send" if request.kind == "recv" else "recv": other.popleft()}
        send, recv = pair["send"], pair["recv"]
        if send.size != recv.size:
            text = words.sizes(send.rank, send.size, recv.rank, recv.size)
            raise _Ends(Trouble("mismatch", text, recv.rank, self._line(recv)))
        step = max(send.clock, recv.clock) + 1
        size = max(send.size, EMPTY_BYTES) + (TAG_BYTES if send.tag else 0)
        self._count(Transfer(send.rank, recv.rank, size, step, "send", send.at, request.at))
        self._pending -= send.size
        recv.data, send.data = send.data, b""
        send.after = recv.after = step
        self._answer_all()

    def _count(self, transfer: Transfer) -> None:
        self._transfers.append(transfer)
        self._bytes += transfer.bytes

    def _line(self, request: _Request) -> int:
        return _whole(request.call.get("line", 0))

    # ------------------------------------------------------------ collectives

    def _join(self, request: _Request, payload: bytes) -> None:
        call, size = request.call, len(self._world)
        name = call["name"]
        if name not in collectives.NAMES:
            raise BadFrame("a collective that is none")
        if name not in self._task.calls:
            text = words.not_listed(request.rank, name, self._task.calls)
            raise _Ends(Trouble("refused", text, request.rank, self._line(request)))
        ranks = tuple(_whole(r, size - 1) for r in _list(call["ranks"], size))
        cuts = tuple(_whole(n) for n in _list(call["cuts"], size))
        if request.rank not in ranks or len(set(ranks)) < len(ranks):
            raise BadFrame("a group that is none")
        if cuts and (len(cuts) != len(ranks) or sum(cuts) != len(payload)):
            raise BadFrame("pieces that do not fit")
        call["wants"] = tuple(_whole(n) for n in _list(call.get("wants", []), size))
        if call["wants"] and len(call["wants"]) != len(ranks):
            raise BadFrame("pieces that do not fit")
        _whole(call.get("row", 0))
        _whole(call["bytes"])
        if not isinstance(call["dtype"], str) or not isinstance(call["operation"], str):
            raise BadFrame("a type that is none")
        call["root"] = _whole(call["root"], len(ranks) - 1)
        call["cuts"] = cuts
        request.data, request.group = payload, ranks
        place = self._counted[request.rank, ranks]
        self._counted[request.rank, ranks] += 1
        meeting = self._meetings.setdefault((ranks, place), [])
        meeting.append(request)
        first = meeting[0]
        if any(first.call[key] != call[key] for key in ("name", "operation", "dtype", "root")):
            text = words.other_call(first.rank, _call(first.call), request.rank, _call(call), place + 1)
            raise _Ends(Trouble("mismatch", text, request.rank, self._line(request)))
        if len(meeting) == len(ranks):
            del self._meetings[ranks, place]
            self._complete(ranks, sorted(meeting, key=lambda r: ranks.index(r.rank)))

    def _complete(self, ranks: tuple[int, ...], meeting: list[_Request]) -> None:
        """All have come: everybody gets the result."""
        call = meeting[0].call
        name, root = call["name"], call["root"]
        given = [Contribution(r.data, r.call["cuts"]) for r in meeting]
        if name == "all_to_all":
            self._same_pieces(meeting)
        try:
            results = collectives.results(name, given, root, call["operation"], call["dtype"])
            sent = collectives.messages(name, given, root, collectives.itemsize(call["dtype"]))
        except CannotReduce as error:
            text = words.cannot_reduce(name, str(error))
            raise _Ends(Trouble("refused", text, meeting[0].rank, self._line(meeting[0]))) from None
        except (ValueError, IndexError):
            results, sent = [], []
        if sum(map(len, results)) > MOST_PENDING or any(len(x) > LARGEST_PAYLOAD for x in results):
            raise _Ends(Trouble("too much", words.too_much(MOST_MESSAGES, MOST_BYTES), meeting[0].rank))
        wrong = not results or any(len(x) != r.call["bytes"] for x, r in zip(results, meeting, strict=True))
        if wrong:
            sizes = [len(r.data) for r in meeting]
            text = words.other_sizes(name, dict(zip(ranks, sizes, strict=True)))
            raise _Ends(Trouble("mismatch", text, meeting[0].rank, self._line(meeting[0])))
        begin, now = max(r.clock for r in meeting), time.monotonic() - self._began
        at = max(r.at for r in meeting)
        for message in sent:
            sender, receiver = ranks[message.sender], ranks[message.receiver]
            step = begin + message.step + 1
            self._count(Transfer(sender, receiver, message.bytes, step, name, at, now))
        self._calls[name] += 1
        after = begin + collectives.steps(sent)
        for request, result in zip(meeting, results, strict=True):
            self._pending -= len(request.data)
            request.data, request.after = result, after
        self._answer_all()

    def _same_pieces(self, meeting: list[_Request]) -> None:
        """Does each rank of an all-to-all expect what each other sends to it? `wants` may be left out."""
        for (a, sender), (b, receiver) in itertools.product(enumerate(meeting), repeat=2):
            sent, wanted = sender.call["cuts"], receiver.call["wants"]
            if sent and wanted and sent[b] != wanted[a]:
                row = _whole(sender.call.get("row", 0))
                text = words.other_piece(sender.rank, sent[b], receiver.rank, wanted[a], row)
                raise _Ends(Trouble("mismatch", text, receiver.rank, self._line(receiver)))

    # ------------------------------------------------------------ those who wait

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
                place = self._counted[number, request.group] - 1
                came = {r.rank for r in self._meetings.get((request.group, place), [])}
                missing = [r for r in request.group if r not in came]
                lines.append(words.waits_in(number, rank.line, request.call["name"], missing))
            else:
                lines.append(words.waits_for(number, rank.line, request.peer, request.kind, request.tag))
        return lines

    def _deadlock(self) -> Trouble:
        first = next(n for n, rank in enumerate(self._world) if rank.state == "waits")
        return Trouble("deadlock", words.deadlock(self._where()), first, self._world[first].line)

    def _left(self) -> Trouble | None:
        """All have returned: is there a message that nobody took, or that never came, or a call that nobody
        waited for?"""
        for (kind, sender, receiver, _), queue in self._queues.items():
            if queue:
                text = words.left(kind, sender, receiver, len(queue))
                rank = sender if kind == "send" else receiver
                return Trouble("left", text, rank, self._line(queue[0]))
        for meeting in self._meetings.values():
            text = words.left_in(meeting[0].call["name"], [r.rank for r in meeting])
            return Trouble("left", text, meeting[0].rank, self._line(meeting[0]))
        for request in (first for each in self._world for first in each.requests.values()):
            name = request.call["name"] if request.kind == "collective" else f"i{request.kind}"
            text = words.never_waited_for(request.rank, name, self._line(request))
            return Trouble("left", text, request.rank, self._line(request))
        return None


def _goes_on(rank: _Rank) -> bool:
    """Whether a rank may say something without being answered first."""
    return rank.state == "runs" or bool(rank.out) or (rank.state == "waits" and not rank.alone)


def _call(call: Head) -> str:
    """A collective in words: what must be the same on all ranks."""
    name = str(call["name"])
    if name in ("all_reduce", "reduce", "reduce_scatter"):
        return f"{name} ({call['operation']}, {call['dtype']})"
    return f"{name} from {call['root']}" if name in ("broadcast", "scatter") else name


def _whole(value: Any, most: int = 2**53) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise BadFrame("a number that is none")
    return value


def _list(value: Any, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise BadFrame("a list that is none")
    return value
