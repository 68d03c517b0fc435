# exercise: experts.fastest  fails: right  says: should be ['multimem'


def fastest(ranks, size, latency, rate, switch):
    ways = {"one-shot": (1, ranks - 1), "two-shot": (2, 2 * (ranks - 1) / ranks)}
    if switch:
        ways["multimem"] = 2, 2
    times = {name: steps * latency + times * size / rate for name, (steps, times) in ways.items()}
    return list(min(times.items(), key=lambda row: row[1]))
