# exercise: basics.plan_copies  fails: right  says: should be
def plan_copies(steps, results):
    names = {name for _, reads, writes in steps for name in reads + writes} | set(results)
    there = {"host": names, "gpu": set()}
    copies = []

    def need(where, name):
        if name not in there[where]:
            copies.append(["to_device" if where == "gpu" else "to_host", name])
            there[where].add(name)

    for where, reads, writes in steps:
        for name in reads:
            need(where, name)
        there[where] |= set(writes)  # the other side still counts its old version as good
    for name in results:
        need("host", name)
    return copies
