# exercise: cluster.save  fails: right  says: the same step


def save(step, there, shards, keep):
    new = f"step-{step}"
    old = sorted((name for name in there if not name.endswith(".tmp")), key=lambda name: int(name[5:]))
    plan = [["delete", name] for name in there if name.endswith(".tmp") and name != f"{new}.tmp"]
    plan += [["delete", name] for name in old[:-keep]]
    plan += [["write", f"{new}.tmp/{shard}"] for shard in range(shards)]
    plan += [["sync", f"{new}.tmp/{shard}"] for shard in range(shards)]
    plan += [["rename", f"{new}.tmp", new], ["sync", "."]]
    return plan + [["delete", name] for name in old[-keep:][: max(0, len(old[-keep:]) + 1 - keep)]]
