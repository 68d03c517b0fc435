# exercise: serve.admit  fails: right  says: reserve for their longest outputs

from gpulab import serving


@serving.admission
def admit(queue, running, blocks, slots):
    return [request.number for request in queue[:slots]]
