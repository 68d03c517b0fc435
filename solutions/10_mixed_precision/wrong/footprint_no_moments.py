# exercise: mixed.footprint  fails: right  says: should be
def footprint(parameters, choice):
    return parameters * (8 if choice == "FP32" else 10 if choice == "AMP" else 4)
