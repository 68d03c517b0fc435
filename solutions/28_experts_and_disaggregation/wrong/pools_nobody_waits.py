# exercise: fleet.pools  fails: right  says: the first token takes


def pools(load, times, limits):
    inf = float("inf")
    rate, seconds = load["rate"], load["prompt"] * times["prefill"]
    transfer = load["prompt"] * times["transfer"]

    def first(gpus):
        busy = rate * seconds / gpus
        return inf if busy >= 1 else seconds

    def step(gpus):
        share = inf if gpus <= 0 else rate * load["output"] * times["request"] / gpus
        return inf if share >= 1 else times["step"] / (1 - share)

    def together(gpus):
        left = gpus * (1 - rate * seconds / gpus)
        return first(gpus) <= limits["first"] and step(left) + seconds <= limits["between"]

    def least(holds):
        return next((gpus for gpus in range(1, 2000) if holds(gpus)), inf)

    n = least(together)
    p = least(lambda gpus: first(gpus) + transfer <= limits["first"])
    d = least(lambda gpus: step(gpus) <= limits["between"])
    return ["together", n] if n <= p + d else ["apart", p, d]
