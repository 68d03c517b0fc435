# exercise: shard.offload  fails: right  says: no room
def offload(layers, fetch, compute, room):
    plan = [f"fetch {i}" for i in range(layers)]
    plan += [f"forward {i}" for i in range(layers)]
    return plan + [f"backward {i}" for i in reversed(range(layers))]
