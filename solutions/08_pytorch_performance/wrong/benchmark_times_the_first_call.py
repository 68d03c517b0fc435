# exercise: pytorch.benchmark  fails: right  says: first wrong: compiled
def benchmark(now, call, flush, synchronize):
    times = []
    for _ in range(20):
        flush()
        synchronize()
        began = now()
        call()
        synchronize()
        times.append(now() - began)
    return sum(times) / len(times)
