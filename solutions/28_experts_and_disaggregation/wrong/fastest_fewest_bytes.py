# exercise: experts.fastest  fails: right  says: first wrong: no switch


def fastest(ranks, size, latency, rate, switch):
    if switch:
        return ["multimem", 2 * latency + (ranks + 1) / ranks * size / rate]
    return ["two-shot", 2 * latency + 2 * (ranks - 1) / ranks * size / rate]
