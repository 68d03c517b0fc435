# exercise: collective.broadcast  fails: rounds  says: 39 rounds
def broadcast(ranks, root):
    return [[[root, rank]] for rank in range(ranks) if rank != root]
