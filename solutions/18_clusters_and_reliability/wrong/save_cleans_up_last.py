# exercise: cluster.save  fails: copies on disk  says: before you write


def save(step, there, shards, keep):
    new = f"step-{step}"
    old = sorted((name for name in there if not name.endswith(".tmp")), key=lambda name: int(name[5:]))
    plan = [["delete", f"{new}.tmp"]] if f"{new}.tmp" in there else []
    plan += [["write", f"{new}.tmp/{shard}"] for shard in range(shards)]
    plan += [["sync", f"{new}.tmp/{shard}"] for shard in range(shards)]
    plan += [["rename", f"{new}.tmp", new], ["sync", "."]]
    plan += [["delete", name] for name in there if name.endswith(".tmp") and name != f"{new}.tmp"]
    return plan + [["delete", name] for name in old[: max(0, len(old) + 1 - keep)]]
