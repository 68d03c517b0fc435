# exercise: serving_project.serve  fails: goodput, adversary  says: whose first token
from gpulab import serving


@serving.policy
def serve(state):
    machine, times = state.machine, state.machine.times
    rate = times.peak / times.per_token  # tokens of prompts a second

    def order(request):
        hopeless = not request.made and state.now + request.left / rate > request.arrival + 1.0
        return not hopeless, request.arrival, request.number

    needs = {r.number: machine.blocks_for(r.tokens + max(1, r.left)) for r in state.running}
    free, preempt = machine.blocks - sum(needs.values()), []
    for request in sorted(state.running, key=lambda r: (not order(r)[0], r.tokens)):
        if free >= 0:
            break
        preempt.append(request.number)
        free += needs[request.number]
    running = [r for r in state.running if r.number not in preempt]
    room = min(256, machine.step_tokens) - sum(r.decodes for r in running)
    prefill, admit = {}, []
    for request in sorted((r for r in running if r.left), key=order):
        prefill[request.number] = max(0, min(request.left, room))
        room -= prefill[request.number]
    for request in sorted(state.waiting, key=order):
        blocks = machine.blocks_for(request.left)
        if preempt or len(running) + len(admit) == machine.slots or room <= 0:
            break
        if blocks <= free - 60 or not (running or admit):
            admit.append(request.number)
            prefill[request.number] = min(request.left, room)
            room, free = room - prefill[request.number], free - blocks
    return {"admit": admit, "preempt": preempt, "prefill": prefill}
