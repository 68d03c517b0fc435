# exercise: serve.chunk  fails: longest gap  says: reads of the weights

from gpulab import serving


@serving.policy
def chunk(state):
    return {"admit": [request.number for request in state.waiting[: state.free_slots]]}
