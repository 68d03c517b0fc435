# exercise: basics.plan_copies  fails: right  says: should be
def plan_copies(steps, results):
    on = {"host": set(), "gpu": set()}
    copies, seen = [], set()
    for where, reads, writes in steps:
        for name in reads:
            if name not in on[where] and (where == "gpu" or name in seen):
                copies.append(["to_device" if where == "gpu" else "to_host", name])
            on[where].add(name)
            seen.add(name)
        on[where] |= set(writes)  # the other side still counts its old version as good
        seen |= set(writes)
    copies += [["to_host", name] for name in results if name in on["gpu"] and name not in on["host"]]
    return copies
