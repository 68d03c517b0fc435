# exercise: serve.admit  fails: right  says: must not overtake

from math import ceil

from gpulab import serving


@serving.admission
def admit(queue, running, blocks, slots):
    chosen = []
    for request in queue[::-1][:slots]:
        blocks -= ceil((request.prompt + request.most) / 16)
        if blocks < 0:
            break
        chosen.append(request.number)
    return chosen
