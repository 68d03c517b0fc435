# exercise: fleet.route  fails: time to first token  says: the worst is a popular start


def route(blocks, replicas):
    def match(replica):
        cached = set(replica["cached"])
        return next((n for n, block in enumerate(blocks) if block not in cached), len(blocks))

    best = max(range(len(replicas)), key=lambda r: match(replicas[r]))
    shortest = min(range(len(replicas)), key=lambda r: replicas[r]["queued"])
    return best if replicas[best]["queued"] <= 100 + replicas[shortest]["queued"] else shortest
