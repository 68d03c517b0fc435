# exercise: serve.chunk  fails: longest gap  says: reads of the weights

from gpulab import serving


@serving.policy
def chunk(state):
    admitted = state.waiting[: state.free_slots]
    pieces, free = {}, 128
    for request in [*state.running, *admitted]:
        if request.left:
            pieces[request.number] = min(request.left, free)
            free -= pieces[request.number]
    return {"admit": [request.number for request in admitted], "prefill": pieces}
