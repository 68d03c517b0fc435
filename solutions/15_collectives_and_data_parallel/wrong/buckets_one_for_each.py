# exercise: parallel.buckets  fails: waiting  says: when does your first bucket start
def buckets(sizes, log, latency, rate):
    ready = dict.fromkeys(sizes, 0.0) | {name: ms for ms, name in log}
    return [[name] for name in sorted(sizes, key=lambda name: ready[name])]
