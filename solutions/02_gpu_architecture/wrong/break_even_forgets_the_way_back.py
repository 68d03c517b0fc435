# exercise: arch.break_even  fails: right  says: right 2 of 5 sets


def break_even(job):
    moved = 0 if job["resident"] else job["bytes_in"]
    gain = job["cpu_s"] - job["gpu_s"] - moved / job["link"]
    return max(1, int(job["overhead_s"] / gain) + 1) if gain > 0 else None
