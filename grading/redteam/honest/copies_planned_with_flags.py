# how: two flags an array in place of sets of names
# exercise: basics.plan_copies
def plan_copies(steps, results):
    valid = {}

    def flags(name):
        return valid.setdefault(name, {"host": True, "gpu": False})

    plan = []

    def fetch(name, place):
        if not flags(name)[place]:
            plan.append(("to_host" if place == "host" else "to_device", name))
            flags(name)[place] = True

    for place, reads, writes in steps:
        for name in reads:
            fetch(name, place)
        for name in writes:
            valid[name] = {"host": place == "host", "gpu": place == "gpu"}
    for name in results:
        fetch(name, "host")
    return plan
