# exercise: serve.queue  fails: right  says: first wrong: too many


def queue(rate, service, cv, limit):
    load = rate * service
    wait = limit - service
    best = max(0, 2 * wait / (service**2 * (1 + cv**2) + 2 * wait * service))
    if load > 1:
        return [load, None, None, best]
    latency = service + rate * service**2 * (1 + cv**2) / (2 * (1 - load)) if load < 1 else float("inf")
    return [load, latency, rate * latency, best]
