# exercise: serve.chunk  fails: right  says: of its prompt are left

from gpulab import serving


@serving.policy
def chunk(state):
    admitted = state.waiting[: state.free_slots]
    pieces = {r.number: 200 for r in [*state.running, *admitted] if r.left}
    return {"admit": [request.number for request in admitted], "prefill": pieces}
