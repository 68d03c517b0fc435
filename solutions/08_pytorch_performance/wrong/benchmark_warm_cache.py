# exercise: pytorch.benchmark  fails: right  says: first wrong: cached
import statistics


def benchmark(now, call, flush, synchronize):
    call()
    times = []
    for _ in range(21):
        synchronize()
        began = now()
        call()
        synchronize()
        times.append(now() - began)
    return statistics.median(times)
