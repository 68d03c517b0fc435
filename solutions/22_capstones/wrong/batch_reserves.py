# exercise: serving_project.batch  fails: time  says: how many of the 32 slots
from gpulab import serving


@serving.policy
def batch(state):
    """First come, first served, with blocks reserved for the longest output."""
    machine = state.machine
    free = machine.blocks - sum(machine.blocks_for(r.prompt + r.most) for r in state.running)
    room = (machine.step_tokens or 10**9) - sum(r.decodes for r in state.running)
    admit, prefill = [], {}
    for request in state.running:
        if request.left:
            prefill[request.number] = max(0, min(request.left, room))
            room -= prefill[request.number]
    for request in state.waiting[: state.free_slots]:
        free -= machine.blocks_for(request.prompt + request.most)
        if free < 0:
            break
        admit.append(request.number)
        prefill[request.number] = max(0, min(request.left, room))
        room -= prefill[request.number]
    return {"admit": admit, "prefill": prefill}
