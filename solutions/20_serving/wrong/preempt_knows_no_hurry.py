# exercise: serve.preempt  fails: urgent requests  says: s to the slowest first token

from gpulab import serving


@serving.policy
def preempt(state):
    machine = state.machine

    def blocks_after(request):
        return machine.blocks_for(request.tokens + (request.left or 1))

    def rank(request):
        return request.arrival, request.number

    stay = sorted(state.running, key=rank)
    waiting = sorted(state.waiting, key=rank)
    admitted = []
    need = sum(map(blocks_after, stay + admitted))
    gone = []
    while stay and (need > machine.blocks or len(stay) + len(admitted) > machine.slots):
        gone.append(stay.pop())
        need -= blocks_after(gone[-1])
    for request in [] if gone else waiting[len(admitted) :]:
        need += blocks_after(request)
        if need > 0.9 * machine.blocks or len(stay) + len(admitted) == machine.slots:
            break
        admitted.append(request)
    return {"admit": [r.number for r in admitted], "preempt": [r.number for r in gone]}
