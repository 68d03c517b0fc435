# exercise: arch.warps_needed  fails: right  says: first wrong: data sheets


def warps_needed(gpu, bytes_per_lane):
    per_cycle = gpu["dram_bandwidth"] / gpu["sms"] / gpu["clock"]
    return int(per_cycle * gpu["dram_latency"] / (32 * bytes_per_lane))
