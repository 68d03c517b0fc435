# exercise: serving_project.batch  fails: right  says: blocks
from gpulab import serving


@serving.policy
def batch(state):
    machine = state.machine
    needs = {r.number: machine.blocks_for(r.tokens + max(1, r.left)) for r in state.running}
    free = machine.blocks - sum(needs.values())
    preempt = []
    admit = []
    for request in sorted(state.waiting, key=lambda r: r.left)[: 0 if preempt else state.free_slots]:
        free -= machine.blocks_for(request.left + 1)
        if free < machine.blocks // 8 and (admit or state.running):
            break
        admit.append(request.number)
    return {"admit": admit, "preempt": preempt}
