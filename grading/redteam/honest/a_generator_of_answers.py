# how: a recursive generator and sorting by a key
# exercise: pytorch.epoch
def epoch(loads, step, workers, prefetch):
    def simulate():
        done = 0
        loaded, handed = [], []
        for i, load in enumerate(loads):
            if not workers:
                done += load + step
            else:
                begin = max(
                    loaded[i - workers] if i >= workers else 0,
                    handed[i - workers * prefetch] if i >= workers * prefetch else 0,
                )
                loaded.append(begin + load)
                handed.append(max(loaded[-1], done))
                done = handed[-1] + step
            yield done

    return max(simulate(), default=0)
