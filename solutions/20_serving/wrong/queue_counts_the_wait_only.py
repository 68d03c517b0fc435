# exercise: serve.queue  fails: right  says: first wrong: M/M/1


def queue(rate, service, cv, limit):
    load = rate * service
    best = 2 * limit / (service**2 * (1 + cv**2) + 2 * limit * service)
    if load >= 1:
        return [load, None, None, best]
    wait = load * service * (1 + cv**2) / (2 * (1 - load))
    return [load, wait, rate * wait, best]
