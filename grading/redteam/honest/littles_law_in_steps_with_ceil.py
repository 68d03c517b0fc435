# how: math.ceil of a quotient in place of a floor of its negative
# exercise: arch.warps_needed
import math


def warps_needed(gpu, bytes_per_lane):
    # Little's law: bytes under way = bandwidth × latency, here of one SM.
    seconds = gpu["dram_latency"] / gpu["clock"]
    bytes_under_way = gpu["dram_bandwidth"] * seconds / gpu["sms"]
    return math.ceil(bytes_under_way / (bytes_per_lane * 32))
