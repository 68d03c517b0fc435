# exercise: serve.queue  fails: right  says: first wrong: M/D/1


def queue(rate, service, cv, limit):
    load = rate * service
    best = max(0, 1 / service - 1 / limit)
    if load >= 1:
        return [load, None, None, best]
    return [load, service / (1 - load), load / (1 - load), best]
