"""What the engine says about a decision that cannot be carried out."""

from __future__ import annotations


def at(step: int, said: str) -> str:
    return f"in step {step} {said}"


def not_a_decision(kind: str) -> str:
    return (
        f"the policy returned {kind}. It has to return a Decision, or a dictionary with some of "
        "the keys admit, preempt, swap, prefill, sleep"
    )


def unknown_part(name: str) -> str:
    return f"the decision has the key {name!r}; possible keys are admit, preempt, swap, prefill, sleep"


def not_numbers(part: str, value: object) -> str:
    said = repr(value)
    said = said if len(said) <= 60 else f"{said[:58]} …"
    what = "must map numbers of requests to tokens" if part == "prefill" else "must list numbers of requests"
    return f"`{part}` is {said}; it {what}"


def twice(part: str, number: int) -> str:
    return f"`{part}` names request {number} twice"


def not_waiting(number: int, where: str) -> str:
    return f"the policy admits request {number}, which {where}"


def not_running(part: str, number: int, where: str) -> str:
    return f"`{part}` names request {number}, which {where}"


def both_ways(number: int) -> str:
    return f"request {number} is both preempted and swapped"


def no_slot(running: int, slots: int) -> str:
    return f"{running} requests would run in {slots} slots"


def no_blocks(needed: int, blocks: int, running: int, reserve: bool) -> str:
    what = "reserve for their longest outputs" if reserve else "need after this step"
    return f"the {running} running requests {what} {needed} blocks, but there are {blocks}"


def never_fits(number: int, needed: int, blocks: int) -> str:
    return f"request {number} may need {needed} blocks but the machine has {blocks}: it can never be served"


def bad_chunk(number: int, value: object) -> str:
    return f"`prefill` gives request {number} {value!r} tokens; it must be a whole number, 0 or more"


def chunk_too_long(number: int, tokens: int, left: int) -> str:
    return f"`prefill` gives request {number} {tokens} tokens, but only {left} of its prompt are left"


def over_budget(tokens: int, budget: int) -> str:
    return f"the step would process {tokens} tokens, but its limit is {budget}"


def bad_sleep(value: object) -> str:
    return f"`sleep` is {value!r}; it must be the time in seconds at which the engine asks again, or None"


def nothing_moves(waiting: int, running: int) -> str:
    if running:
        return f"no token is processed, so the {running} running requests would wait for ever"
    return f"no request runs or is admitted, and no more will arrive, so {waiting} would wait for ever"


def no_end(decisions: int, left: int) -> str:
    return f"after {decisions:,} decisions {left} requests have still not finished"


def no_host_room(needed: int, room: int) -> str:
    return f"{needed} swapped blocks would be on the host, which has space for {room}"


WAITS = "is waiting and does not run"
RUNS = "is running already"
OVER = "has finished"
UNKNOWN = "has not arrived"


def stops_early(decisions: int, left: int) -> str:
    return f"it stops after {decisions:,} decisions, and {left} requests have not finished"


def no_server(name: str) -> str:
    return (
        f"an HTTP service needs {name}, which is not installed. "
        "Run: make setup (or pip install 'gpulab[serving]')"
    )
