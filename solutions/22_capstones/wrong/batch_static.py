# exercise: serving_project.batch  fails: time  says: naive 300
from gpulab import serving


@serving.policy
def batch(state):
    if state.running:
        return {}
    admit, free = [], state.free_blocks
    for request in state.waiting[: state.free_slots]:
        free -= state.machine.blocks_for(request.prompt + request.most)
        if free < 0:
            break
        admit.append(request.number)
    return {"admit": admit}
