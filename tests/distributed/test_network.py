"""The network of ranks: what it delivers and counts, and what it does with ranks that lie, stop or flood it."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.subjects.distributed import collectives, network
from gpulab.subjects.distributed.collectives import Contribution
from gpulab.subjects.distributed.frames import LENGTHS, BadFrame, Reader, encode, read
from gpulab.subjects.distributed.network import Network, Outcome, Task

Play = Callable[["Actor"], None]
RESULT = {"op": "result", "returned": [], "named": []}


class Actor:
    """Plays a rank by hand."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.count = 0

    def say(self, data: bytes | None = None, payload: bytes = b"", **head: Any) -> None:
        self.connection.sendall(encode(head, payload) if data is None else data)

    def post(self, payload: bytes = b"", **head: Any) -> int:
        self.count += 1
        self.say(payload=payload, id=self.count, **head)
        return self.count

    def wait(self, number: int) -> bytes:
        self.say(op="wait", id=number)
        head, payload = read(self.connection)
        if head["op"] == "abort":
            self.say(op="error", kind="Aborted", text="")
            raise EOFError
        return payload

    def send(self, peer: int, data: bytes, tag: int = 0) -> int:
        return self.post(data, op="send", peer=peer, tag=tag)

    def receive(self, peer: int, size: int, tag: int = 0) -> bytes:
        return self.wait(self.post(op="recv", peer=peer, bytes=size, tag=tag))

    def collective(self, name: str, data: bytes, **more: Any) -> int:
        head = {"ranks": [0, 1], "root": 0, "cuts": [], "bytes": len(data), "dtype": "uint8", "operation": ""}
        return self.post(data, **{**head, "op": "collective", "name": name, **more})


def played(*plays: Play, calls: frozenset[str] = frozenset(), seconds: float = 5.0) -> Outcome:
    """What comes of ranks that do as the plays say and then return."""
    pairs = [socket.socketpair() for _ in plays]
    hub = Network([ours for ours, _ in pairs])

    def act(play: Play, connection: socket.socket) -> None:
        actor = Actor(connection)
        try:
            assert read(connection)[0]["op"] == "task"
            play(actor)
            actor.say(**RESULT)
        except (EOFError, OSError):
            pass

    threads = [
        threading.Thread(target=act, args=(play, theirs), daemon=True)
        for play, (_, theirs) in zip(plays, pairs, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        return hub.run(Task(tuple(({}, b"") for _ in plays), calls), seconds)
    finally:
        hub.close()
        for thread in threads:
            thread.join(5)
        for _, theirs in pairs:
            theirs.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(network, "PATIENCE", 0.1)
    monkeypatch.setattr(network, "GRACE", 0.3)
    yield


def nothing(actor: Actor) -> None:
    pass


# ---------------------------------------------------------------- delivering and counting


def test_a_message_arrives_and_is_counted_on_its_link() -> None:
    got: list[bytes] = []
    outcome = played(
        lambda a: a.wait(a.send(1, b"hello")) and None,
        lambda a: got.append(a.receive(0, 5)),
    )
    assert outcome.trouble is None and got == [b"hello"]
    assert outcome.traffic.links == {(0, 1): 5}
    assert (outcome.traffic.sent, outcome.traffic.received) == ([5, 0], [0, 5])
    assert [outcome.traffic[name] for name in ("bytes", "messages", "steps")] == [5, 1, 1]


def test_messages_of_a_link_arrive_in_order_and_those_with_tags_by_tag() -> None:
    got: list[bytes] = []

    def sends(a: Actor) -> None:
        for number in [a.send(1, b"1"), a.send(1, b"7", tag=7), a.send(1, b"2")]:
            a.wait(number)

    def takes(a: Actor) -> None:
        posted = [a.post(op="recv", peer=0, bytes=1, tag=tag) for tag in (7, 0, 0)]
        got.extend(a.wait(number) for number in reversed(posted))

    assert played(sends, takes).trouble is None
    assert got == [b"2", b"1", b"7"]


def test_splitting_a_message_into_many_saves_nothing_and_empty_ones_and_tags_are_counted() -> None:
    def sends(a: Actor) -> None:
        for piece in b"abcd":
            a.wait(a.send(1, bytes([piece])))
        a.wait(a.send(1, b""))
        a.wait(a.send(1, b"", tag=5))

    def takes(a: Actor) -> None:
        for size, tag in [(1, 0)] * 4 + [(0, 0), (0, 5)]:
            a.receive(0, size, tag)

    traffic = played(sends, takes).traffic
    assert traffic.sizes == {("send", 1): 5, ("send", 9): 1}
    assert traffic["bytes"] == 14 and traffic["steps"] == 6


COLLECTIVES = frozenset({"all_reduce", "all_gather", "gather", "broadcast", "barrier"})


@pytest.mark.parametrize("name", sorted(COLLECTIVES))
def test_a_collective_with_nothing_in_it_is_a_call_with_messages_bytes_and_steps(name: str) -> None:
    """Ranks that wait for one another tell one another something, if only by when they come."""

    def calls(a: Actor) -> None:
        for _ in range(3):
            a.wait(a.collective(name, b"", operation="SUM"))

    outcome = played(calls, calls, calls=COLLECTIVES)
    assert outcome.trouble is None
    assert all(outcome.traffic[count] >= 3 for count in ("bytes", "messages", "steps", f"calls of {name}"))
    assert outcome.traffic["busiest sender"] >= 3
    assert outcome.traffic[f"bytes of {name}"] == outcome.traffic["bytes"]


def test_steps_are_the_longest_chain_of_messages_that_waited_for_one_another() -> None:
    """0 → 1 → 2 is a chain of two; 0 → 2 beside it makes none longer."""

    def first(a: Actor) -> None:
        for number in [a.send(1, b"x"), a.send(2, b"y")]:
            a.wait(number)

    def second(a: Actor) -> None:
        a.receive(0, 1)
        a.wait(a.send(2, b"x"))

    def third(a: Actor) -> None:
        direct, forwarded = (a.post(op="recv", peer=peer, bytes=1) for peer in (0, 1))
        a.wait(direct)
        a.wait(forwarded)

    traffic = played(first, second, third).traffic
    assert traffic["messages"] == 3 and traffic["steps"] == 2


def test_a_message_waits_for_its_receiver_too_and_a_collective_for_all() -> None:
    def first(a: Actor) -> None:
        a.wait(a.send(1, b"x"))
        a.wait(a.collective("broadcast", b"z", ranks=[0, 1, 2]))
        a.wait(a.send(1, b"x"))

    def second(a: Actor) -> None:
        a.receive(0, 1)
        a.receive(2, 1)
        a.wait(a.collective("broadcast", b"", bytes=1, ranks=[0, 1, 2]))
        a.receive(0, 1)

    def third(a: Actor) -> None:
        a.wait(a.send(1, b"y"))
        a.wait(a.collective("broadcast", b"", bytes=1, ranks=[0, 1, 2]))

    traffic = played(first, second, third, calls=frozenset({"broadcast"})).traffic
    # Rank 2's message comes second, two rounds of a broadcast among three begin then, the last is the fifth.
    assert traffic["steps"] == 5
    assert traffic.sizes == {("send", 1): 3, ("broadcast", 1): 2}
    assert traffic["calls of broadcast"] == 1


def test_what_is_not_waited_for_is_not_delivered_and_a_test_says_so() -> None:
    said: list[str] = []

    def tests(a: Actor) -> None:
        number = a.post(op="recv", peer=1, bytes=2)
        while True:
            a.say(op="test", id=number)
            head, payload = read(a.connection)
            said.append(head["op"])
            if head["op"] == "ok":
                assert payload == b"ok"
                return
            a.wait(a.send(1, b"!"))

    def later(a: Actor) -> None:
        a.receive(0, 1)
        a.wait(a.send(0, b"ok"))
        while True:
            a.receive(0, 1)

    outcome = played(tests, later)
    assert said[0] == "not yet" and said[-1] == "ok"
    assert outcome.trouble is not None and outcome.trouble.kind == "deadlock"  # `later` asks for more


# ---------------------------------------------------------------- trouble


def test_a_deadlock_says_who_waits_for_whom() -> None:
    outcome = played(lambda a: a.receive(1, 4) and None, lambda a: a.receive(2, 4) and None, nothing)
    assert outcome.trouble is not None and outcome.trouble.kind == "deadlock"
    assert outcome.trouble.text.splitlines()[1:] == [
        "  rank 0 waits for rank 1 to send",
        "  rank 1 waits for rank 2 to send",
        "  rank 2 has returned",
    ]


def test_a_collective_that_not_all_call_names_who_is_missing() -> None:
    def calls(a: Actor) -> None:
        a.wait(a.collective("barrier", b"", ranks=[0, 1, 2]))

    outcome = played(calls, calls, lambda a: a.receive(0, 1) and None, calls=frozenset({"barrier"}))
    assert outcome.trouble is not None
    assert "rank 0 waits in barrier for rank 2" in outcome.trouble.text


MISMATCHES: list[tuple[Play, Play, str, str]] = [
    (  # as many bytes altogether, but not from each
        lambda a: a.wait(a.collective("all_to_all", b"abcd", cuts=[2, 2], wants=[2, 2], row=2)) and None,
        lambda a: a.wait(a.collective("all_to_all", b"abcd", cuts=[2, 2], wants=[4, 0], row=2)) and None,
        "mismatch",
        "rank 0 sends 1 row to rank 1, which expects 2 from it",
    ),
    (
        lambda a: a.wait(a.collective("all_gather", b"ab", bytes=4)) and None,
        lambda a: a.wait(a.collective("broadcast", b"", bytes=2)) and None,
        "mismatch",
        "collective 1 of the group is ",
    ),
    (
        lambda a: a.wait(a.collective("broadcast", b"abc", bytes=3)) and None,
        lambda a: a.wait(a.collective("broadcast", b"", bytes=2)) and None,
        "mismatch",
        "the tensors of this broadcast do not fit together",
    ),
    (
        lambda a: a.wait(a.collective("all_reduce", b"abc", operation="SUM")) and None,
        lambda a: a.wait(a.collective("all_reduce", b"ab", operation="SUM")) and None,
        "mismatch",
        "rank 0 3 bytes, rank 1 2 bytes go in",
    ),
    (
        lambda a: a.wait(a.collective("all_reduce", b"abc", operation="BXOR")) and None,
        lambda a: a.wait(a.collective("all_reduce", b"abc", operation="BXOR")) and None,
        "refused",
        "all_reduce does not do BXOR of uint8 here",
    ),
    (
        lambda a: a.wait(a.collective("scatter", b"")) and None,
        nothing,
        "refused",
        "rank 0 calls scatter, which this exercise does not allow: allowed are sends, receives and all_gather,",
    ),
    (
        lambda a: a.wait(a.send(1, b"abc")) and None,
        lambda a: a.receive(0, 4) and None,
        "mismatch",
        "rank 0 sends 3 bytes to rank 1, which waits for 4",
    ),
    (lambda a: a.send(1, b"abc") and None, nothing, "left", "rank 0 sent a message to rank 1, which never"),
    (
        lambda a: a.post(op="recv", peer=1, bytes=1) and None,
        nothing,
        "left",
        "rank 0 asked rank 1 for a message that never came",
    ),
    (
        lambda a: a.collective("barrier", b"") and None,
        nothing,
        "left",
        "all ranks have returned, but only rank 0 called barrier",
    ),
]


@pytest.mark.parametrize(("one", "other", "kind", "words"), MISMATCHES)
def test_calls_that_do_not_fit_together_end_the_run(one: Play, other: Play, kind: str, words: str) -> None:
    allowed = frozenset({"all_reduce", "broadcast", "all_gather", "all_to_all", "barrier"})
    outcome = played(one, other, calls=allowed)
    assert outcome.trouble is not None and outcome.trouble.kind == kind
    assert words in outcome.trouble.text, outcome.trouble.text


def test_the_lowest_rank_that_failed_is_the_one_to_look_at() -> None:
    def fails(a: Actor) -> None:
        a.say(op="error", kind="ValueError", text="no", line=3)
        raise EOFError

    outcome = played(lambda a: a.receive(1, 1) and None, fails, fails)
    assert outcome.trouble is not None
    assert (outcome.trouble.rank, outcome.trouble.error, outcome.trouble.line) == (1, "ValueError", 3)


def test_a_rank_that_hangs_up_is_named() -> None:
    outcome = played(lambda a: a.receive(1, 1) and None, lambda a: a.connection.close())
    assert outcome.trouble is not None and outcome.trouble.kind == "died" and outcome.trouble.rank == 1


def test_time_messages_and_bytes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = played(lambda a: time.sleep(3), nothing, seconds=0.3)
    assert outcome.trouble is not None and outcome.trouble.kind == "too long"
    assert "rank 0 computes" in outcome.trouble.text

    def floods(a: Actor) -> None:
        while True:
            a.send(1, bytes(1000))

    def takes(a: Actor) -> None:
        while True:
            a.receive(0, 1000)

    def much(receiver: Play, limit: str, value: int) -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(network, limit, value)
            outcome = played(floods, receiver)
        assert outcome.traffic["bytes"] < 120_000  # of 1,000 a message: it ends where the limit is
        return outcome.trouble is not None and outcome.trouble.kind == "too much"

    assert much(lambda a: time.sleep(1), "MOST_PENDING", 10_000)
    assert much(lambda a: time.sleep(1), "MOST_MESSAGES", 100)
    assert much(takes, "MOST_BYTES", 10_000)
    assert much(takes, "MOST_MESSAGES", 100)


# ---------------------------------------------------------------- what is no frame


def barrier(**more: Any) -> bytes:
    """A frame that is well but for what is told."""
    head = {"op": "collective", "name": "barrier", "id": 1, "ranks": [0, 1], "cuts": [], "bytes": 0}
    return encode({**head, "root": 0, "dtype": "uint8", "operation": "", **more})


FORGED: dict[str, bytes] = {
    "no lengths": b"\xff" * 200,
    "a head without end": LENGTHS.pack(1 << 31, 0),
    "a payload without end": LENGTHS.pack(10, 1 << 60),
    "no JSON": LENGTHS.pack(4, 0) + b"nope",
    "a pickle": LENGTHS.pack(15, 0) + b"\x80\x04\x95cos\nsystem\n.",
    "deep JSON": LENGTHS.pack(60_000, 0) + b"[" * 60_000,
    "a list": LENGTHS.pack(2, 0) + b"[]",
    "nothing in it": encode({}),
    "another operation": encode({"op": "evil", "id": 1}),
    "an operation that is none": encode({"op": [], "id": 1}),
    "a rank that is none": encode({"op": "send", "id": 1, "peer": 2}),
    "a negative rank": encode({"op": "send", "id": 1, "peer": -1}),
    "itself": encode({"op": "send", "id": 1, "peer": 0}),
    "true": encode({"op": "send", "id": 1, "peer": True}),
    "a fraction": encode({"op": "recv", "id": 1, "peer": 1, "bytes": 0.5}),
    "no size": encode({"op": "recv", "id": 1, "peer": 1}),
    "a wait for nothing": encode({"op": "wait", "id": 9}),
    "a group that is none": barrier(ranks=[0, 0]),
    "a group of others": barrier(ranks=[1]),
    "a group of strangers": barrier(ranks=[0, 7]),
    "pieces that do not fit": barrier(cuts=[9, 9]),
    "too few pieces": barrier(cuts=[0]),
    "a root that is none": barrier(root=2),
    "a type that is none": barrier(dtype=7),
    "bytes that are none": barrier(bytes=-1),
    "a collective that is none": encode({"op": "collective", "name": "system", "id": 1}),
    "two results": encode(RESULT) * 2,
    "a number that was there": encode({"op": "recv", "id": 3, "peer": 1, "bytes": 1}) * 2,
    "a head that is long": encode({"op": "recv", "id": 1, "peer": 1, "bytes": 1, "more": "x" * 40_000}),
}


@pytest.mark.parametrize("attack", FORGED)
def test_what_is_no_frame_ends_the_run_and_nothing_else(attack: str) -> None:
    def forges(a: Actor) -> None:
        a.say(FORGED[attack])
        time.sleep(0.2)
        raise EOFError

    outcome = played(forges, lambda a: a.receive(0, 1) and None, calls=frozenset({"barrier"}))
    assert outcome.trouble is not None
    assert (outcome.trouble.kind, outcome.trouble.rank) == ("forged", 0), outcome.trouble


def test_a_number_that_a_call_had_before_is_refused_also_when_that_call_is_done() -> None:
    def repeats(a: Actor) -> None:
        a.receive(1, 1)
        a.count = 0
        a.receive(1, 1)

    outcome = played(repeats, lambda a: [a.wait(a.send(0, b"x")) for _ in range(2)] and None)
    assert outcome.trouble is not None and (outcome.trouble.kind, outcome.trouble.rank) == ("forged", 0)
    assert "call 1 has the number of an earlier one" in outcome.trouble.text


# ---------------------------------------------------------------- what a rank can make the network keep

# A rank as a process of its own: what it needs is not counted here. It says many small frames, or few large
# ones, that no honest rank says, and ends when nobody listens any more.
HOSTILE = """
import itertools, json, socket, struct, sys
wire = socket.socket(fileno=int(sys.argv[1]))
def frame(payload=b"", **head):
    text = json.dumps(head).encode()
    return struct.pack("!IQ", len(text), len(payload)) + text + payload
nested = "[" + ",".join(["[]"] * 6_000) + "]"
more = {"more": json.loads(nested), "key": "k" * 1000}
group = {"ranks": [0, 1], "root": 0, "cuts": [], "bytes": 0, "dtype": "uint8" + "x" * 20_000, "operation": "SUM"}
wire.recv(1 << 16)
try:
    for i in itertools.count(1):
        wire.sendall(eval(sys.argv[2]))
except OSError:
    pass
"""
FLOODS: dict[str, str] = {
    "sends with heads of 30 KB": 'frame(op="send", id=i, peer=1, tag=i, **more)',
    "receives that nothing comes for": 'frame(op="recv", id=i, peer=1, tag=i, bytes=1, **more)',
    "parts in collectives of long names": 'frame(op="collective", name="all_reduce", id=i, **group)',
    "collectives of one rank": 'frame(op="collective", name="barrier", id=i, **{**group, "ranks": [0], "dtype": "uint8"})',
    "large messages": 'frame(b"x" * 7_000_000, op="send", id=i, peer=1)',
    "questions without listening": 'frame(op="recv", id=i, peer=1, bytes=1) + frame(op="test", id=i) * 1000',
    "results": 'frame(b"x" * 8_000_000, op="result", returned=more["more"], named=[])',
    "a frame that goes on and on": 'struct.pack("!IQ", 10, 8 << 20) + b"x" * (8 << 20)',
}  # fmt: skip
MOST_KEPT = 60  # MB of this process, whatever one rank does; 47 for messages of 7 MB, 25 for the rest


@pytest.mark.parametrize("flood", FLOODS)
def test_a_hostile_rank_makes_the_network_keep_little(flood: str) -> None:
    (ours, theirs), (other, silent) = socket.socketpair(), socket.socketpair()
    hub = Network([ours, other])
    command = [sys.executable, "-c", HOSTILE, str(theirs.fileno()), FLOODS[flood]]
    rank = subprocess.Popen(command, pass_fds=[theirs.fileno()])
    theirs.close()
    tracemalloc.start()
    try:
        task = Task((({}, b""), ({}, b"")), COLLECTIVES, most=1000)
        outcome = hub.run(task, seconds=6)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        hub.close()
        rank.kill()
        rank.wait()
        silent.close()
    assert outcome.trouble is not None and outcome.trouble.rank == 0
    assert len(outcome.trouble.text) < 1000
    assert peak < MOST_KEPT << 20, f"{peak >> 20} MB"


def test_of_a_result_no_more_is_kept_than_a_right_one_has() -> None:
    pairs = [socket.socketpair()]
    hub = Network([pairs[0][0]])
    pairs[0][1].sendall(encode(RESULT, b"x" * 5000))
    outcome = hub.run(Task((({}, b""),), most=1000), 5)
    hub.close()
    pairs[0][1].close()
    assert outcome.trouble is None and outcome.returned[0][1] == b"x" * 1000


@given(
    st.lists(st.tuples(st.dictionaries(st.text(max_size=5), st.integers()), st.binary()), max_size=5),
    st.data(),
)
def test_frames_survive_being_cut_anywhere(
    frames: list[tuple[dict[str, int], bytes]], data: st.DataObject
) -> None:
    text = b"".join(encode(head, payload) for head, payload in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    reader, found = Reader(), []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        found += list(reader.feed(text[start:end]))
    assert found == frames


@given(st.binary(max_size=300))
def test_any_bytes_are_frames_or_refused(text: bytes) -> None:
    try:
        for head, payload in Reader().feed(text):
            assert isinstance(head, dict) and isinstance(payload, bytes)
    except BadFrame:
        pass


# ---------------------------------------------------------------- collectives

RANKS = st.integers(1, 6)


def contributions(name: str, ranks: int, each: int) -> list[Contribution]:
    """`each` float32 of every rank for every rank, or `each` in all."""
    pieces = name in ("reduce_scatter", "all_to_all", "scatter")
    numbers = np.random.default_rng(ranks * 100 + each)
    found = []
    for _ in range(ranks):
        values = numbers.integers(-50, 50, each * (ranks if pieces else 1)).astype(np.float32)
        found.append(Contribution(values.tobytes(), (4 * each,) * ranks if pieces else ()))
    return found


def arrays(data: list[bytes]) -> list[list[float]]:
    return [np.frombuffer(part, np.float32).tolist() for part in data]


@given(RANKS, st.integers(0, 9), st.data())
def test_collectives_give_what_their_names_say(ranks: int, each: int, data: st.DataObject) -> None:
    root = data.draw(st.integers(0, ranks - 1))

    def run(name: str, operation: str = "SUM") -> tuple[list[list[float]], np.ndarray]:
        given_ = contributions(name, ranks, each)
        got = arrays(collectives.results(name, given_, root, operation, "float32"))
        return got, np.array(arrays([g.data for g in given_]))

    for operation, fold in {"SUM": np.sum, "MAX": np.max, "MIN": np.min, "PRODUCT": np.prod}.items():
        got, x = run("all_reduce", operation)
        np.testing.assert_allclose(got, [fold(x, axis=0)] * ranks, rtol=1e-6)
    got, x = run("all_reduce", "AVG")
    np.testing.assert_allclose(got, [x.mean(0)] * ranks, rtol=1e-6, atol=1e-6)
    got, x = run("reduce")
    assert got[root] == x.sum(0).tolist() and sum(map(len, got)) == each
    got, x = run("broadcast")
    assert got == [x[root].tolist()] * ranks
    got, x = run("all_gather")
    assert got == [x.reshape(-1).tolist()] * ranks
    got, x = run("gather")
    assert got[root] == x.reshape(-1).tolist()
    got, x = run("reduce_scatter")
    assert got == x.sum(0).reshape(ranks, each).tolist()
    got, x = run("all_to_all")
    assert got == x.reshape(ranks, ranks, each).transpose(1, 0, 2).reshape(ranks, -1).tolist()
    got, x = run("scatter")
    assert got == x[root].reshape(ranks, each).tolist()
    assert run("barrier")[0] == [[]] * ranks


def test_bfloat16_is_rounded_after_each_addition() -> None:
    torch = pytest.importorskip("torch")
    numbers = torch.randn(3, 500).to(torch.bfloat16)
    parts = [row.view(torch.uint8).numpy().tobytes() for row in numbers]
    got = collectives.reduced(parts, "SUM", "bfloat16")
    expected = (numbers[0] + numbers[1]) + numbers[2]
    assert got == expected.view(torch.uint8).numpy().tobytes()


@given(st.integers(2, 6), st.integers(0, 9))
def test_the_messages_of_a_ring_carry_each_share_all_the_way(ranks: int, each: int) -> None:
    """By bookkeeping: who has what after the messages, in order of their steps."""
    sent = collectives.messages("all_gather", contributions("all_gather", ranks, each))
    assert collectives.steps(sent) == ranks - 1
    assert {(m.sender, m.receiver) for m in sent} == {(r, (r + 1) % ranks) for r in range(ranks)}
    assert sum(m.bytes for m in sent) == ranks * (ranks - 1) * 4 * each
    total = collectives.messages("all_reduce", contributions("all_reduce", ranks, each), itemsize=4)
    assert collectives.steps(total) == 2 * (ranks - 1)
    assert sum(m.bytes for m in total) == 2 * (ranks - 1) * 4 * each


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=6, unique=True))
def test_each_share_goes_round_the_ring_to_the_rank_that_keeps_it(share: list[int]) -> None:
    """Shares are told apart by their sizes."""
    ranks = len(share)
    each = [Contribution(bytes(sum(share)), tuple(share))] * ranks
    sent = collectives.messages("reduce_scatter", each)
    for owner, size in enumerate(share):
        path = sorted((m for m in sent if m.bytes == size), key=lambda m: m.step)
        assert [m.step for m in path] == list(range(ranks - 1))
        assert [m.receiver for m in path][:-1] == [m.sender for m in path][1:]
        assert path[-1].receiver == owner


@given(st.integers(2, 9), st.data())
def test_a_broadcast_reaches_all_in_as_few_rounds_as_can_be(ranks: int, data: st.DataObject) -> None:
    root = data.draw(st.integers(0, ranks - 1))
    sent = collectives.messages("broadcast", contributions("broadcast", ranks, 2), root)
    have = {root}
    for step in range(collectives.steps(sent)):
        now = [m for m in sent if m.step == step]
        assert all(m.sender in have for m in now) and len({m.sender for m in now}) == len(now)
        have |= {m.receiver for m in now}
    assert have == set(range(ranks)) and len(sent) == ranks - 1
    assert collectives.steps(sent) == (ranks - 1).bit_length()
    back = collectives.messages("reduce", contributions("reduce", ranks, 2), root)
    assert {(m.receiver, m.sender) for m in back} == {(m.sender, m.receiver) for m in sent}
    assert max(m.step for m in back if m.receiver == root) == collectives.steps(back) - 1
