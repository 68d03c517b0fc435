# how: generators of candidates and min with a key, where the solution has nested loops
# exercise: training_project.plan
import itertools
import math


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def candidates(model, cluster):
    gpus = cluster["nodes"] * cluster["per_node"]
    for tensor in divisors(gpus):
        for pipeline in divisors(gpus // tensor):
            if model["layers"] % pipeline == 0:
                for micro in divisors(model["batch"]):
                    yield {
                        "tensor": tensor,
                        "pipeline": pipeline,
                        "data": gpus // tensor // pipeline,
                        "micro": micro,
                    }


def priced(model, cluster, made):
    try:
        return layouts.cost(model, cluster, made)
    except layouts.NoLayout:
        return None


def variants(model, cluster):
    for shape in candidates(model, cluster):
        for again in range(model["layers"] // shape["pipeline"] + 1):
            made = {**shape, "order": layouts.WAYS, "recompute": again}
            cost = priced(model, cluster, made)
            if cost is None:
                break
            if cost.memory <= cluster["memory"]:
                for order in itertools.permutations(layouts.WAYS):
                    yield {**made, "order": order}
                break


def plan(model, cluster):
    best = min(variants(model, cluster), key=lambda made: layouts.cost(model, cluster, made).seconds)
    mtbf = cluster["mtbf"] / (cluster["nodes"] * cluster["per_node"])
    best["interval"] = (2 * mtbf * runs.saving(model, cluster)) ** 0.5
    return best
