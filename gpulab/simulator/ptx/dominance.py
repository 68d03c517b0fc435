"""Where the paths out of a branch meet again."""

from __future__ import annotations

from .basic_blocks import leaves
from .ir import Function


def immediate_post_dominators(function: Function) -> tuple[int | None, ...]:
    """For each block of `function`, the first block that every path from it to an exit runs through.

    None where there is no such block: the paths meet only at the end of the thread, or never reach it.

    >>> text = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { .reg .pred %p<2>; "
    >>> text += "@%p1 bra END; nanosleep.u32 20; END: ret; }"
    >>> immediate_post_dominators(parse(text).functions["k"])
    (2, 2, None)
    """
    blocks = function.blocks
    exit_ = len(blocks)
    predecessors: list[list[int]] = [[] for _ in range(exit_ + 1)]
    successors = [block.successors or (exit_,) for block in blocks]
    for index, block in enumerate(blocks):
        if block.successors and leaves(block.instructions[-1]):
            successors[index] = (*block.successors, exit_)  # guarded: some lanes leave
        for successor in successors[index]:
            predecessors[successor].append(index)
    order = _reverse_post_order(exit_, predecessors)
    rank = {block: place for place, block in enumerate(order)}
    above: dict[int, int] = {exit_: exit_}
    changed = True
    while changed:
        changed = False
        for index in order[1:]:
            known = [successor for successor in successors[index] if successor in above]
            meeting = known[0]
            for successor in known[1:]:
                meeting = _meet(meeting, successor, above, rank)
            if above.get(index) != meeting:
                above[index] = meeting
                changed = True
    return tuple(None if above.get(index, exit_) == exit_ else above[index] for index in range(exit_))


def _meet(one: int, other: int, above: dict[int, int], rank: dict[int, int]) -> int:
    """The closest block that is above both in the tree found so far."""
    while one != other:
        if rank[one] > rank[other]:
            one = above[one]
        else:
            other = above[other]
    return one


def _reverse_post_order(start: int, edges: list[list[int]]) -> list[int]:
    seen, order = {start}, []
    path = [(start, iter(edges[start]))]
    while path:
        block, ahead = path[-1]
        following = next((next_ for next_ in ahead if next_ not in seen), None)
        if following is None:
            order.append(block)
            path.pop()
        else:
            seen.add(following)
            path.append((following, iter(edges[following])))
    return order[::-1]
