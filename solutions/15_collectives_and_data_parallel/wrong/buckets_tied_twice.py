# exercise: parallel.buckets  fails: right  says: is sent twice
def buckets(sizes, log, latency, rate):
    used = [name for _, name in log]
    return [[name] for name in sizes if name not in used] + [[name] for name in used]
