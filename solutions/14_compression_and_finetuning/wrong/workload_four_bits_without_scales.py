# exercise: compress.workload  fails: right  says: QLoRA
def workload(layers, width, rank, way):
    model, adapters = 12 * width**2 * layers, 18 * width * rank * layers
    if way == "full":
        return [model, 16 * model, 6 * model]
    frozen = 2 if way == "LoRA" else 0.5
    return [adapters, frozen * model + 16 * adapters, 4 * model + 6 * adapters]
