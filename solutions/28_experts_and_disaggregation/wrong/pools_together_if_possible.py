# exercise: fleet.pools  fails: GPUs  says: the other way of dividing


def pools(load, times, limits):
    inf = float("inf")
    rate, seconds = load["rate"], load["prompt"] * times["prefill"]
    transfer = load["prompt"] * times["transfer"]

    def first(gpus):
        busy = rate * seconds / gpus
        return inf if busy >= 1 else busy / (2 * (1 - busy)) * seconds + seconds

    def step(gpus):
        share = inf if gpus <= 0 else rate * load["output"] * times["request"] / gpus
        return inf if share >= 1 else times["step"] / (1 - share)

    def least(holds):
        return next((gpus for gpus in range(1, 2000) if holds(gpus)), inf)

    p = least(lambda gpus: first(gpus) + transfer <= limits["first"])
    d = least(lambda gpus: step(gpus) <= limits["between"])
    n = least(
        lambda gpus: (
            first(gpus) <= limits["first"] and step(gpus - rate * seconds) + seconds <= limits["between"]
        )
    )
    return ["together", n] if n < inf else ["apart", p, d]
