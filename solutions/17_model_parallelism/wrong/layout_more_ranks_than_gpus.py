# exercise: parallel.layout  fails: right  says: there are
def layout(model, cluster):
    return {
        "tensor": cluster["per_node"],
        "pipeline": cluster["nodes"],
        "data": 2,
        "micro": 1,
        "order": ["tensor", "data", "pipeline"],
    }
