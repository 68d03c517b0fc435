# exercise: arch.peak  fails: right  says: first wrong: plain


def peak(sheet, dtype, advertised):
    unit = sheet["units"].get(dtype)
    if unit is None:
        return None
    rate = sheet["sms"] * unit["fma_per_sm"] * unit["clock"]
    return [rate, round(advertised / rate)]
