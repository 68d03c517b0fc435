# exercise: basics.plan_copies  fails: right  says: should be
def plan_copies(steps, results):
    copies = []
    for where, reads, writes in steps:
        if where == "gpu":
            copies += [["to_device", name] for name in reads]
            copies += [["to_host", name] for name in writes]
    return copies
