# exercise: mixed.footprint  fails: right  says: should be
def footprint(parameters, choice):
    return parameters * {"FP32": 16, "AMP": 8, "BF16 pure": 8, "BF16 + 8-bit Adam": 6}[choice]
