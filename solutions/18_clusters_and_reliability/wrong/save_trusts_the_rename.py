# exercise: cluster.save  fails: right  says: without contents


def save(step, there, shards, keep):
    new = f"step-{step}"
    plan = [["write", f"{new}.tmp/{shard}"] for shard in range(shards)]
    return [*plan, ["rename", f"{new}.tmp", new], ["sync", "."]]
