# how: the samples sorted by hand and the middle one taken, after three warm-up calls
# exercise: pytorch.benchmark
def benchmark(now, call, flush, synchronize):
    def once():
        flush()
        synchronize()
        start = now()
        call()
        synchronize()
        stop = now()
        return stop - start

    for _ in range(3):
        call()
    synchronize()
    samples = sorted([once() for _ in range(31)])
    return samples[len(samples) // 2]
