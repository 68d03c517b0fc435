# exercise: parallel.layout  fails: time of a step  says: more than with the best
from gpulab.distributed import layouts


def layout(model, cluster):
    gpus, tensor = cluster["nodes"] * cluster["per_node"], cluster["per_node"]
    for pipeline in range(1, gpus + 1):
        if gpus % (tensor * pipeline):
            continue
        this = {"tensor": tensor, "pipeline": pipeline, "data": gpus // (tensor * pipeline)}
        this |= {"micro": 1, "order": ["tensor", "data", "pipeline"]}
        try:
            if layouts.cost(model, cluster, this).memory <= cluster["memory"]:
                return this
        except layouts.NoLayout:
            pass
