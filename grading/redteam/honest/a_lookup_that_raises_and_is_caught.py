# how: an exception for an unknown type of number, and the answer in two steps
# exercise: arch.peak
def peak(sheet, dtype, advertised):
    try:
        unit = sheet["units"][dtype]
    except KeyError:
        return None
    flops_per_clock = 2 * unit["fma_per_sm"] * sheet["sms"]
    rate = flops_per_clock * unit["clock"]
    ratio = int(advertised / rate + 0.5)
    return rate, ratio
