# exercise: serve.admit  fails: steps, all that fit  says: 1,552 steps

from math import ceil

from gpulab import serving


@serving.admission
def admit(queue, running, blocks, slots):
    if len(running) > slots:
        return []
    chosen = []
    for request in queue[:slots]:
        blocks -= ceil((request.prompt + request.most) / 16)
        if blocks < 0:
            break
        chosen.append(request.number)
    return chosen
