# exercise: cluster.save  fails: synchronisations  says: for the names


def save(step, there, shards, keep):
    new = f"step-{step}"
    old = sorted((name for name in there if not name.endswith(".tmp")), key=lambda name: int(name[5:]))
    plan = []
    for name in [*(n for n in there if n.endswith(".tmp")), *old[: max(0, len(old) - keep)]]:
        plan += [["delete", name], ["sync", "."]]
    for shard in range(shards):
        file = f"{new}.tmp/{shard}"
        plan += [["write", file], ["sync", file], ["sync", "."]]
    plan += [["rename", f"{new}.tmp", new], ["sync", "."]]
    for name in old[max(0, len(old) - keep) :][: max(0, min(len(old), keep) + 1 - keep)]:
        plan += [["delete", name], ["sync", "."]]
    return plan
