# exercise: parallel.buckets  fails: waiting  says: when does your first bucket start
def buckets(sizes, log, latency, rate):
    return [list(sizes)]
