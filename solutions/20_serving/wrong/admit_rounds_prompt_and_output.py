# exercise: serve.admit  fails: all that fit  says: How many blocks do 8 tokens

from math import ceil

from gpulab import serving


@serving.admission
def admit(queue, running, blocks, slots):
    chosen = []
    for request in queue[:slots]:
        blocks -= ceil(request.prompt / 16) + ceil(request.most / 16)
        if blocks < 0:
            break
        chosen.append(request.number)
    return chosen
