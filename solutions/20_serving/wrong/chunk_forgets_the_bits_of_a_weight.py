# exercise: serve.chunk  fails: longest gap  says: reads of the weights

from gpulab import serving


@serving.policy
def chunk(state):
    admitted = state.waiting[: state.free_slots]
    pieces, free = {}, int(state.machine.times.peak / state.machine.times.bandwidth)
    free -= sum(request.decodes for request in state.running)
    for request in [*state.running, *admitted]:
        if request.left:
            pieces[request.number] = max(0, min(request.left, free))
            free -= pieces[request.number]
    return {"admit": [request.number for request in admitted], "prefill": pieces}
