# exercise: shard.offload  fails: time, fetches  says: 24
def offload(layers, fetch, compute, room):
    uses = [*range(layers), *reversed(range(layers))]
    plan, here = [], []
    for now, layer in enumerate(uses):
        for wanted in uses[now : now + 2]:
            if wanted not in here and len(here) < room:
                here.append(wanted)
                plan.append(f"fetch {wanted}")
        plan.append(f"{'forward' if now < layers else 'backward'} {layer}")
        here.remove(layer)
        plan.append(f"evict {layer}")
    return plan
