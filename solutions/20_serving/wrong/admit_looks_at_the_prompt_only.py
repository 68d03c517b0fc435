# exercise: serve.admit  fails: right  says: reserve for their longest outputs

from math import ceil

from gpulab import serving


@serving.admission
def admit(queue, running, blocks, slots):
    chosen = []
    for request in queue[:slots]:
        blocks -= ceil(request.prompt / 16)
        if blocks >= 0:
            chosen.append(request.number)
    return chosen
