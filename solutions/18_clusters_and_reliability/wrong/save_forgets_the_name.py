# exercise: cluster.save  fails: right  says: right after your last operation


def save(step, there, shards, keep):
    new = f"step-{step}"
    old = sorted((name for name in there if not name.endswith(".tmp")), key=lambda name: int(name[5:]))
    plan = [["delete", name] for name in there if name.endswith(".tmp")]
    plan += [["write", f"{new}.tmp/{shard}"] for shard in range(shards)]
    plan += [["sync", f"{new}.tmp/{shard}"] for shard in range(shards)]
    plan += [["rename", f"{new}.tmp", new]]
    return plan + [["delete", name] for name in old[: len(old) + 1 - keep]]
