# exercise: serve.preempt  fails: computed twice  says: % of all tokens

from gpulab import serving


@serving.policy
def preempt(state):
    machine = state.machine

    def blocks_after(request):
        return machine.blocks_for(request.tokens + (request.left or 1))

    def rank(request):
        return -request.priority, request.arrival, request.number

    stay = sorted(state.running, key=rank)
    waiting = sorted(state.waiting, key=rank)
    admitted = [request for request in waiting if request.priority]
    need = sum(map(blocks_after, stay + admitted))
    gone = []
    while stay and (need > machine.blocks or len(stay) + len(admitted) > machine.slots):
        gone.append(stay.pop(0))
        need -= blocks_after(gone[-1])
    for request in [] if gone else waiting[len(admitted) :]:
        need += blocks_after(request)
        if need > machine.blocks or len(stay) + len(admitted) == machine.slots:
            break
        admitted.append(request)
    return {"admit": [r.number for r in admitted], "preempt": [r.number for r in gone]}
