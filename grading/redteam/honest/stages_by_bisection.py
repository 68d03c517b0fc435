# how: the least longest stage found by bisection, with greedy packing from the end
# exercise: parallel.stages
def stages(times, devices):
    def pack(limit):
        groups, total = [0], 0
        for t in times:
            if groups[-1] and total + t > limit:
                groups.append(0)
                total = 0
            groups[-1] += 1
            total += t
        return groups

    low, high = max(times), sum(times)
    while low < high:
        middle = (low + high) // 2
        if len(pack(middle)) <= devices:
            high = middle
        else:
            low = middle + 1
    groups = pack(low)
    while len(groups) < devices:
        widest = max(range(len(groups)), key=groups.__getitem__)
        groups[widest : widest + 1] = [groups[widest] - 1, 1]
    return groups
