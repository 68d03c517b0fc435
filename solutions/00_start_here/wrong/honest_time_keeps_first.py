# exercise: start.honest_time  fails: right  says: should be
from statistics import mean


def honest_time(log):
    times = log["times_us"]
    if len(times) < 3 or not log["synchronised"]:
        return None
    middle = mean(times)
    bandwidth = log["bytes"] / (middle * 1e-6)
    return None if bandwidth > log["peak_bytes_per_s"] else [middle, bandwidth]
