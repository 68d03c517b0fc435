# exercise: arch.peak  fails: right  says: KeyError


def peak(sheet, dtype, advertised):
    unit = sheet["units"][dtype]
    rate = 2 * sheet["sms"] * unit["fma_per_sm"] * unit["clock"]
    return [rate, round(advertised / rate)]
