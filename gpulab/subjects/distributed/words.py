"""What the network of ranks says about them, in sentences. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def ranks(numbers: Sequence[int]) -> str:
    """``rank 2``, ``ranks 0, 1 and 3``."""
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    return f"ranks {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _in_line(line: int) -> str:
    return f" in line {line}" if line else ""


def done(rank: int) -> str:
    return f"rank {rank} has returned"


def gone(rank: int) -> str:
    return f"rank {rank} has ended"


def runs(rank: int) -> str:
    return f"rank {rank} computes"


def waits_for(rank: int, line: int, peer: int, kind: str, tag: int) -> str:
    what = "receive" if kind == "send" else "send"
    return f"rank {rank} waits{_in_line(line)} for rank {peer} to {what}" + (
        f" with tag {tag}" if tag else ""
    )


def waits_in(rank: int, line: int, name: str, missing: Sequence[int]) -> str:
    who = f" for {ranks(missing)}" if missing else ""
    return f"rank {rank} waits{_in_line(line)} in {name}{who}"


def deadlock(where: Sequence[str]) -> str:
    return "the ranks wait for one another, and none can go on:\n" + "\n".join(f"  {x}" for x in where)


def too_long(seconds: float, where: Sequence[str]) -> str:
    return f"after {seconds:g} s not all ranks have returned:\n" + "\n".join(f"  {x}" for x in where)


def never_ready(seconds: float) -> str:
    return f"after {seconds:.0f} s not all ranks were ready to begin"


def too_much(messages: int, size: int, pending: int) -> str:
    return (
        f"a run may send {messages:,} messages and {size:,} bytes at most, and {pending:,} bytes may be on "
        "their way at a time: does a loop end?"
    )


def too_many_under_way(rank: int, most: int) -> str:
    return (
        f"rank {rank} has {most:,} calls under way that it has not waited for, and may have no more: wait "
        "for some before you start others"
    )


def died(rank: int, size: int) -> str:
    return f"rank {rank} of {size} ended before it returned anything"


def forged(rank: int, why: Exception) -> str:
    return f"what rank {rank} says to the network has not the form of torch.distributed's calls ({why})"


def sizes(sender: int, sent: int, receiver: int, wanted: int) -> str:
    return (
        f"rank {sender} sends {sent:,} bytes to rank {receiver}, which waits for {wanted:,}: both tensors "
        "need the same number of elements, and the same type"
    )


def other_sizes(name: str, given: dict[int, int]) -> str:
    said = ", ".join(f"rank {rank} {size:,} bytes" for rank, size in given.items())
    return f"the tensors of this {name} do not fit together: {said} go in"


def other_piece(sender: int, sent: int, receiver: int, wanted: int, row: int) -> str:
    """`sent` and `wanted` are bytes; `row` those of a row of the sender's tensor, 0 where it has none."""
    rows = row > 0 and sent % row == wanted % row == 0
    have, want = (n // row if rows else n for n in (sent, wanted))
    unit = "row" if rows else "byte"
    return (
        f"in all_to_all rank {sender} sends {have:,} {unit}{'s' * (have != 1)} to rank {receiver}, which "
        f"expects {want:,} from it"
    )


def not_counts(what: object) -> str:
    return f"the numbers of rows are lists of whole numbers, not {what}: `.tolist()` makes one of a tensor"


def other_rows(which: str, asked: int, there: int) -> str:
    return f"the numbers of rows for `{which}` add up to {asked:,}; the tensor has {there:,}"


def to_itself(rank: int, sends: bool) -> str:
    what = "sends to" if sends else "waits for a message from"
    return f"rank {rank} {what} itself; messages go to other ranks, and a single rank has none to send"


def other_call(first: int, one: str, second: int, other: str, place: int) -> str:
    return (
        f"collective {place} of the group is {one} on rank {first} and {other} on rank {second}: all "
        "ranks make the same calls in the same order"
    )


def not_listed(rank: int, name: str, allowed: Collection[str]) -> str:
    may = (
        f"allowed are sends, receives and {', '.join(sorted(allowed))}"
        if allowed
        else "build it of sends and receives"
    )
    return f"rank {rank} calls {name}, which this exercise does not allow: {may}"


def cannot_reduce(name: str, what: str) -> str:
    return (
        f"{name} does not do {what} here: take SUM, PRODUCT, MIN or MAX of a usual type, "
        "or AVG of floating-point numbers"
    )


def left(kind: str, sender: int, receiver: int, count: int) -> str:
    many = "a message" if count == 1 else f"{count:,} messages"
    if kind == "send":
        return (
            f"rank {sender} sent {many} to rank {receiver}, which never took {'it' if count == 1 else 'them'}"
        )
    return f"rank {receiver} asked rank {sender} for {many} that never came"


def never_waited_for(rank: int, call: str, line: int) -> str:
    put = " After puts into symmetric memory, call `memory.quiet()` instead" if call == "isend" else ""
    return (
        f"rank {rank} returned while its {call}{_in_line(line)} was never waited for: nothing says that it "
        f"was over by then. Keep what the call returns, and call its `.wait()`.{put}"
    )


def changed(call: str, line: int) -> str:
    return (
        f"the tensor of the {call}{_in_line(line)} was changed before its wait(): until then the other rank "
        "may get the old numbers or the new ones. Change it after wait(), or take a copy"
    )


def left_in(name: str, came: Sequence[int]) -> str:
    return f"all ranks have returned, but only {ranks(sorted(came))} called {name}"
