# exercise: pytorch.benchmark  fails: right  says: asynchronous
import statistics


def benchmark(now, call, flush, synchronize):
    call()
    times = []
    for _ in range(21):
        began = now()
        call()
        times.append(now() - began)
    return statistics.median(times)
