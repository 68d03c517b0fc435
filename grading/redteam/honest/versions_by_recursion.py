# how: tries all versions of a batch by recursion
# exercise: fleet.rollouts
def rollouts(batches, times, stale):
    def time_of(versions):
        free = busy = done = 0
        ready = []
        for version in versions:
            while done < version:
                busy = max(busy, ready[done]) + times["train"]
                done += 1
                if done == version:
                    free = busy = max(free, busy) + times["sync"]
            free += times["generate"]
            ready.append(free + times["reward"])
        for each in ready[done:]:
            busy = max(busy, each) + times["train"]
        return busy

    def best(versions):
        batch = len(versions)
        if batch == batches:
            return time_of(versions), versions
        least = max(versions[-1] if versions else 0, batch - stale)
        return min(best([*versions, version]) for version in range(least, batch + 1))

    return best([])[1]
