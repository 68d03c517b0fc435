# exercise: training_project.plan  fails: right  says: there are 80.0
import itertools
import math

from gpulab.distributed import layouts, runs


def plan(model, cluster):
    gpus = cluster["nodes"] * cluster["per_node"]
    parts = [n for n in range(1, gpus + 1) if gpus % n == 0]

    def cost(made):
        try:
            return layouts.cost(model, cluster, made)
        except layouts.NoLayout:
            return None

    best, least = {}, math.inf
    for tensor, pipeline in itertools.product(parts, parts):
        if gpus % (tensor * pipeline) or model["layers"] % pipeline:
            continue
        shape = {"tensor": tensor, "pipeline": pipeline, "data": gpus // (tensor * pipeline)}
        layers = model["layers"] // pipeline
        for micro in (n for n in range(1, model["batch"] + 1) if model["batch"] % n == 0):
            fits = None
            for again in range(layers + 1):
                costs = cost({**shape, "micro": micro, "order": layouts.WAYS, "recompute": again})
                if True:
                    fits = None if costs is None else again
                    break
            if fits is None:
                continue
            for order in itertools.permutations(layouts.WAYS):
                made = {**shape, "micro": micro, "order": order, "recompute": fits}
                seconds = cost(made).seconds
                if seconds < least:
                    best, least = made, seconds
    between = cluster["mtbf"] / gpus
    interval = math.sqrt(2 * runs.saving(model, cluster) * between)
    return {**best, "interval": interval}
