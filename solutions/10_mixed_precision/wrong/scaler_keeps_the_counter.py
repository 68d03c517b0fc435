# exercise: mixed.scaler  fails: right  says: GradScaler
def scaler(overflows, scale, growth, backoff, interval):
    states, good = [], 0
    for overflow in overflows:
        if overflow:
            scale *= backoff
        else:
            good += 1
            if good == interval:
                scale, good = scale * growth, 0
        states.append([scale, good])
    return states
