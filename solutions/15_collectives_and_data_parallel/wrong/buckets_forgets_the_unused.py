# exercise: parallel.buckets  fails: right  says: other ranks may have used it
def buckets(sizes, log, latency, rate):
    return [[name] for name in dict.fromkeys(name for _, name in log)]
