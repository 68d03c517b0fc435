# exercise: cluster.pack  fails: nodes  says: nodes more than needed


def pack(jobs, capacity):
    plan, nodes, islands = [None] * len(jobs), 0, []
    for i, (gpus, _) in enumerate(jobs):
        if gpus == 8:
            plan[i], nodes = [[nodes, gpu] for gpu in range(8)], nodes + 1
    rest = [i for i in range(len(jobs)) if plan[i] is None]
    for i in sorted(rest, key=lambda i: -jobs[i][0] * jobs[i][1]):
        gpus, memory = jobs[i]
        at = 0
        while at < len(islands) and (islands[at][0] + gpus > 4 or islands[at][1] < gpus * memory):
            at += 1
        if at == len(islands):
            islands.append([0, capacity])
        plan[i] = [[nodes + at // 2, 4 * (at % 2) + islands[at][0] + k] for k in range(gpus)]
        islands[at][0] += gpus
        islands[at][1] -= gpus * memory
    return plan
