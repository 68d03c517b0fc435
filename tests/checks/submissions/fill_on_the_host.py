# toy.fill: computes on the host
def answer(a, out):
    out.copy_to_device(a.copy_to_host() + 1)
