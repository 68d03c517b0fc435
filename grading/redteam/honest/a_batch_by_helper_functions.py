# how: the policy in two helper functions and a running total of free blocks
# exercise: serving_project.batch
def blocks_after(machine, request):
    return machine.blocks_for(request.tokens + max(request.left, 1))


def to_preempt(machine, running):
    free = machine.blocks - sum(blocks_after(machine, r) for r in running)
    gone = []
    for request in running[::-1]:
        if free >= 0:
            return gone, free
        free += blocks_after(machine, request)
        gone.append(request.number)
    return gone, free


@serving.policy
def batch(state):
    machine = state.machine
    gone, free = to_preempt(machine, list(state.running))
    if gone:
        return {"preempt": gone, "admit": []}
    spare, chosen = machine.blocks // 8, []
    for request in sorted(state.waiting, key=lambda r: r.left):
        if len(chosen) >= state.free_slots:
            break
        free -= machine.blocks_for(request.left + 1)
        if free < spare and (state.running or chosen):
            break
        chosen.append(request.number)
    return {"preempt": gone, "admit": chosen}
