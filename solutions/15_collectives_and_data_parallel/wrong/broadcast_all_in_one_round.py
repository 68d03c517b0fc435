# exercise: collective.broadcast  fails: right  says: one is allowed
def broadcast(ranks, root):
    others = [[root, rank] for rank in range(ranks) if rank != root]
    return [others] if others else []
