# exercise: parallel.layout  fails: right  says: GB on a GPU
import itertools

from gpulab.distributed import layouts


def layout(model, cluster):
    gpus, found = cluster["nodes"] * cluster["per_node"], []
    for tensor, pipeline, micro in itertools.product(
        range(1, gpus + 1), range(1, gpus + 1), (1, 2, 4, 8, 16)
    ):
        if gpus % (tensor * pipeline):
            continue
        this = {"tensor": tensor, "pipeline": pipeline, "data": gpus // (tensor * pipeline)}
        this |= {"micro": micro, "order": ["tensor", "data", "pipeline"]}
        try:
            found.append((layouts.cost(model, cluster, this).seconds, len(found), this))
        except layouts.NoLayout:
            pass
    return min(found)[2]
