# exercise: cluster.save  fails: right  says: no folder


def save(step, there, shards, keep):
    new = f"step-{step}"
    plan = [["delete", name] for name in there]
    plan += [["write", f"{new}.tmp/{shard}"] for shard in range(shards)]
    plan += [["sync", f"{new}.tmp/{shard}"] for shard in range(shards)]
    return [*plan, ["rename", f"{new}.tmp", new], ["sync", "."]]
