# exercise: serve.preempt  fails: right  says: need after this step

from gpulab import serving


@serving.policy
def preempt(state):
    free, admitted = state.free_blocks, []
    for request in state.waiting[: state.free_slots]:
        free -= state.machine.blocks_for(request.left)
        if free < 0:
            break
        admitted.append(request.number)
    return {"admit": admitted}
