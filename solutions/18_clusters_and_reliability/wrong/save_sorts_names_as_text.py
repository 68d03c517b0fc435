# exercise: cluster.save  fails: right  says: more digits


def save(step, there, shards, keep):
    new = f"step-{step}"
    plan = [["delete", name] for name in there if name.endswith(".tmp")]
    plan += [["write", f"{new}.tmp/{shard}"] for shard in range(shards)]
    plan += [["sync", f"{new}.tmp/{shard}"] for shard in range(shards)]
    plan += [["rename", f"{new}.tmp", new], ["sync", "."]]
    names = sorted([*(name for name in there if not name.endswith(".tmp")), new])
    return plan + [["delete", name] for name in names[:-keep]]
