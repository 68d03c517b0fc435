# exercise: serve.admit  fails: right  says: must not overtake

from math import ceil

from gpulab import serving


@serving.admission
def admit(queue, running, blocks, slots):
    chosen = []
    for request in queue:
        needed = ceil((request.prompt + request.most) / 16)
        if needed <= blocks and len(chosen) < slots:
            blocks -= needed
            chosen.append(request.number)
    return chosen
