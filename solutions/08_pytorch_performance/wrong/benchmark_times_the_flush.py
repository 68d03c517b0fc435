# exercise: pytorch.benchmark  fails: right  says: first wrong: cached
import statistics


def benchmark(now, call, flush, synchronize):
    call()
    synchronize()
    times = []
    for _ in range(21):
        began = now()
        flush()
        call()
        synchronize()
        times.append(now() - began)
    return statistics.median(times)
