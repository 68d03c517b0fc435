# how: a broadcast whose list of holders grows while the ranks that wait are taken from another list
# exercise: collective.broadcast
def broadcast(ranks, root):
    holders = [root]
    others = [(root + i) % ranks for i in range(1, ranks)]
    plan = []
    while others:
        step = []
        for sender in list(holders):
            if not others:
                break
            receiver = others.pop(0)
            step.append([sender, receiver])
            holders.append(receiver)
        plan.append(step)
    return plan
