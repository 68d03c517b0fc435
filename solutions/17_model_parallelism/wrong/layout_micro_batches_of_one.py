# exercise: parallel.layout  fails: time of a step  says: more than with the best
import itertools

from gpulab.distributed import layouts


def layout(model, cluster):
    gpus, found = cluster["nodes"] * cluster["per_node"], []
    parts = [n for n in range(1, gpus + 1) if gpus % n == 0]
    choices = itertools.product(parts, parts, itertools.permutations(layouts.WAYS))
    for tensor, pipeline, order in choices:
        this = {"tensor": tensor, "pipeline": pipeline, "data": gpus // (tensor * pipeline)}
        this |= {"micro": 1, "order": order}
        try:
            cost = layouts.cost(model, cluster, this)
        except layouts.NoLayout:
            continue
        if cost.memory <= cluster["memory"]:
            found.append((cost.seconds, len(found), this))
    return min(found)[2]
