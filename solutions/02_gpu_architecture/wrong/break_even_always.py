# exercise: arch.break_even  fails: right  says: None


def break_even(job):
    moved = 0 if job["resident"] else job["bytes_in"] + job["bytes_out"]
    gain = job["cpu_s"] - job["gpu_s"] - moved / job["link"]
    return max(1, int(job["overhead_s"] / abs(gain)) + 1)
