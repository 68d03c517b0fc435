# how: NumPy computes the median and the answer holds its scalars
# exercise: start.honest_time
import numpy as np


def honest_time(log):
    if not log["synchronised"]:
        return None  # nobody waited for the kernel
    times = np.asarray(log["times_us"], dtype=np.float64)[1:]
    if times.size < 3:
        return None
    middle = np.median(times)
    bandwidth = log["bytes"] / middle * 1e6
    if bandwidth > log["peak_bytes_per_s"]:
        return None
    return [middle, bandwidth]
