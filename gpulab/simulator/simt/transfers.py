"""The engine that moves bulk copies: they are sent, and done when somebody waits for them.

PTX lets a copy happen at any time between the instruction that sends it and the end of the wait for it. A
correct kernel cannot tell, so the simulator picks what shows mistakes best. In lockstep, everything happens
as late as may be: memory that is read too early still holds what was there before. With a seed, about half of
the copies happen at once, and in the backwards schedule all of them: memory that is refilled too early has
lost what was there.
"""

from __future__ import annotations

import numpy as np

from . import atomics
from .flights import Flight, Flights
from .mbarrier_words import after, parity
from .run import Run
from .types import I64

Array = np.ndarray

ADDRESS = (1 << 32) - 1  # the lower half of the key of an mbarrier


def flights_of(run: Run) -> Flights:
    """The bulk copies of a chunk, which begin with the first one that asks for them."""
    if run.flights is None:
        seed = [run.frame.schedule.seed or 0, int(run.chunk.blocks[0])]
        run.flights = Flights(np.zeros(run.shape, np.int64), np.random.default_rng(seed))
    return run.flights


def send(run: Run, flight: Flight) -> None:
    """Copies set out."""
    flights, schedule = flights_of(run), run.frame.schedule
    flights.going.append(flight)
    if schedule.backwards:
        _deliver(run, flight, flight.waiting)
    elif schedule.seed is not None:
        _deliver(run, flight, flights.draw.random(flight.row.size) < 0.5)
    _forget(flights)


def look(run: Run, index: int, row: Array, address: Array) -> None:
    """Somebody looks at the mbarriers at `address` of the blocks in `row`, both (n,): copies that they count
    are done, as many as it takes to end the phase. If that is too few, the others come later."""
    if run.flights is None or not run.flights.going:
        return
    looked = np.unique(_key(row, address))
    view = run.shared.view(I64)
    words = view.reshape(-1)
    places = (looked >> 32) * view.shape[1] + (looked & ADDRESS) // 8
    phase = parity(words[places])
    for flight in run.flights.going:
        if flight.barrier is not None and flight.barrier_row is not None:
            open_ = looked[parity(words[places]) == phase]
            _deliver(run, flight, np.isin(_key(flight.barrier_row, flight.barrier), open_))
    _forget(run.flights)
    ended = looked[parity(words[places]) != phase]
    for flight in run.flights.going if run.on_short and ended.size else ():
        if flight.barrier is not None and flight.barrier_row is not None:
            late = flight.waiting & np.isin(_key(flight.barrier_row, flight.barrier), ended)
            for hear in run.on_short if late.any() else ():
                hear(index, flight.index, run.mask(), run.chunk)


def commit(run: Run) -> None:
    """The copies that each lane has sent since its last group are a group."""
    flights = flights_of(run)
    flights.group = flights.group + run.mask()


def wait(run: Run, allowed: int, only_reads: bool) -> None:
    """The bulk groups of the group's lanes are done, all but the last `allowed`, or have been read."""
    flights, lanes = flights_of(run), run.mask()
    for flight in flights.going:
        if flight.group is None:
            continue
        which = flights.group[flight.row, flight.lane] - allowed
        due = lanes[flight.row, flight.lane] & (flight.group < which)
        if only_reads:
            _read(flight, due & flight.unread)
        else:
            _deliver(run, flight, due)
    _forget(flights)


def finish(run: Run) -> None:
    """All threads have returned: what was sent to global memory arrives."""
    for flight in run.flights.going if run.flights is not None else ():
        if flight.target.allocation is None:
            continue
        if run.on_left and flight.unread.any():
            lanes = np.zeros(run.shape, bool)
            lanes[flight.row[flight.unread], flight.lane[flight.unread]] = True
            for hear in run.on_left:
                hear(flight.index, lanes, run.chunk)
        _deliver(run, flight, flight.waiting)


def _deliver(run: Run, flight: Flight, chosen: Array) -> None:
    chosen = chosen & flight.waiting
    if not chosen.any():
        return
    _read(flight, chosen & flight.unread)
    _write(run, flight, chosen)
    flight.waiting = flight.waiting & ~chosen
    run.changed()
    if flight.barrier is not None and flight.barrier_row is not None:
        _complete(run, flight.barrier_row[chosen], flight.barrier[chosen], flight.nbytes[chosen])


def _read(flight: Flight, chosen: Array) -> None:
    source = flight.source
    if source is None or not chosen.any():
        return
    places = source.places[chosen]
    if flight.inside is not None:
        places = np.where(flight.inside[chosen], places, places.flat[0])
    found = source.view.take(places, mode="wrap")
    if flight.values is None:
        flight.values = np.zeros(source.places.shape, source.view.dtype)
    flight.values[chosen] = found
    flight.unread = flight.unread & ~chosen


def _write(run: Run, flight: Flight, chosen: Array) -> None:
    target, values = flight.target, flight.values
    assert values is not None
    places, new = target.places[chosen], values[chosen]
    if flight.inside is not None:
        inside = flight.inside[chosen]
        if flight.fill is not None:
            new = np.where(inside, new, flight.fill)
        else:
            places, new = places[inside], new[inside]
    places, new = places.reshape(-1), new.reshape(-1)
    if not places.size:
        return
    if target.allocation is not None:
        run.memory.writes(target.allocation, places * target.view.itemsize)
    if flight.function is None:
        target.view[places] = new
    else:
        atomics.apply(flight.function, target.view, places, (new,))


def _complete(run: Run, row: Array, address: Array, nbytes: Array) -> None:
    """``complete_tx`` at the mbarriers at `address` of the blocks in `row`, all (n,)."""
    view = run.shared.view(I64)
    words = view.reshape(-1)
    places = row * view.shape[1] + address // 8
    zero = np.zeros(places.size, np.int64)
    atomics.apply(after, words, places, (zero, zero, -nbytes.astype(np.int64)))


def _forget(flights: Flights) -> None:
    if flights.going:
        flights.going = [flight for flight in flights.going if flight.waiting.any()]


def _key(row: Array, address: Array) -> Array:
    return row.astype(np.int64) << 32 | address
