# exercise: cluster.save  fails: right  says: missing or without contents


def save(step, there, shards, keep):
    new = f"step-{step}"
    plan = [["write", f"{new}/{shard}"] for shard in range(shards)]
    plan += [["sync", f"{new}/{shard}"] for shard in range(shards)]
    return [*plan, ["sync", "."]]
