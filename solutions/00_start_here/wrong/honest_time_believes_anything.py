# exercise: start.honest_time  fails: right  says: should be None
from statistics import median


def honest_time(log):
    times = log["times_us"][1:]
    if len(times) < 3 or not log["synchronised"]:
        return None
    middle = median(times)
    return [middle, log["bytes"] / (middle * 1e-6)]
