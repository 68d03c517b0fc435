# exercise: pytorch.benchmark  fails: right  says: first wrong: disturbed
def benchmark(now, call, flush, synchronize):
    call()
    flush()
    synchronize()
    began = now()
    call()
    synchronize()
    return now() - began
