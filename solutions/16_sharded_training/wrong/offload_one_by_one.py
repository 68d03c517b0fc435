# exercise: shard.offload  fails: time  says: 67
def offload(layers, fetch, compute, room):
    uses = [f"forward {i}" for i in range(layers)] + [f"backward {i}" for i in reversed(range(layers))]
    return [event for use in uses for event in (f"fetch {use.split()[1]}", use, f"evict {use.split()[1]}")]
