# exercise: pytorch.idle  fails: right  says: two streams
def idle(trace):
    busy = sorted(
        (e["ts"], e["ts"] + e["dur"])
        for e in trace
        if e["ph"] == "X" and e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    gaps, until = [], busy[0][0] if busy else 0
    for start, stop in busy:
        gaps.append(max(0, start - until))
        until = stop
    return [sum(gaps), max(gaps, default=0)]
