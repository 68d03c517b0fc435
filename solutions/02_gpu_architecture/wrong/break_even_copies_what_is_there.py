# exercise: arch.break_even  fails: right  says: resident


def break_even(job):
    gain = job["cpu_s"] - job["gpu_s"] - (job["bytes_in"] + job["bytes_out"]) / job["link"]
    return max(1, int(job["overhead_s"] / gain) + 1) if gain > 0 else None
