# exercise: mixed.scaler  fails: differing states  says: GradScaler
def scaler(overflows, scale, growth, backoff, interval):
    states, good = [], 0
    for overflow in overflows:
        if overflow:
            scale, good = scale * backoff, 0
        elif good == interval:
            scale, good = scale * growth, 0
        else:
            good += 1
        states.append([scale, good])
    return states
