# how: a generator of states, collected by list
# exercise: mixed.scaler
def scaler(overflows, scale, growth, backoff, interval):
    def states(scale):
        calm = 0
        for bad in overflows:
            calm = 0 if bad else calm + 1
            if bad:
                scale *= backoff
            elif calm >= interval:
                scale *= growth
                calm = 0
            yield [scale, calm]

    return list(states(scale))
