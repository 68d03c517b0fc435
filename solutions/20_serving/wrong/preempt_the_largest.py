# exercise: serve.preempt  fails: computed twice  says: % of all tokens

from gpulab import serving


@serving.policy
def preempt(state):
    machine = state.machine

    def blocks_after(request):
        return machine.blocks_for(request.tokens + (request.left or 1))

    stay, gone = list(state.running), []
    need = sum(blocks_after(request) for request in stay)
    while need > machine.blocks:
        largest = max(stay, key=lambda request: request.tokens)
        stay.remove(largest)
        gone.append(largest.number)
        need -= blocks_after(largest)
    admitted = []
    for request in state.waiting[: machine.slots - len(stay)]:
        need += blocks_after(request)
        if need > machine.blocks:
            break
        admitted.append(request.number)
    return {"admit": admitted, "preempt": gone}
