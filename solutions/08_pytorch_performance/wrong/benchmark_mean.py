# exercise: pytorch.benchmark  fails: right  says: first wrong: disturbed
def benchmark(now, call, flush, synchronize):
    call()
    times = []
    for _ in range(21):
        flush()
        synchronize()
        began = now()
        call()
        synchronize()
        times.append(now() - began)
    return sum(times) / len(times)
