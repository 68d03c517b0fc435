# exercise: serve.preempt  fails: mean latency  says: 1 × that of reserving

from gpulab import serving


@serving.policy
def preempt(state):
    blocks_for = state.machine.blocks_for
    free = state.machine.blocks - sum(blocks_for(r.prompt + r.most) for r in state.running)
    admitted = []
    for request in state.waiting[: state.free_slots]:
        free -= blocks_for(request.prompt + request.most)
        if free < 0:
            break
        admitted.append(request.number)
    return {"admit": admitted}
