# exercise: arch.break_even  fails: right  says: first wrong: a tie
from math import ceil


def break_even(job):
    moved = 0 if job["resident"] else job["bytes_in"] + job["bytes_out"]
    gain = job["cpu_s"] - job["gpu_s"] - moved / job["link"]
    return max(1, ceil(job["overhead_s"] / gain)) if gain > 0 else None
