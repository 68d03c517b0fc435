# exercise: cluster.pack  fails: islands  says: jobs over two islands


def pack(jobs, capacity):
    plan, nodes = [], []
    for gpus, memory in jobs:
        for node in range(len(nodes) + 1):
            if node == len(nodes):
                nodes.append([[], [capacity, capacity]])
            taken, left = nodes[node]
            mine, room = [], list(left)
            for gpu in range(8):
                if gpu not in taken and len(mine) < gpus and room[gpu // 4] >= memory:
                    mine.append(gpu)
                    room[gpu // 4] -= memory
            if len(mine) == gpus:
                taken += mine
                nodes[node][1] = room
                plan.append([[node, gpu] for gpu in mine])
                break
    return plan
