# exercise: collective.broadcast  fails: rounds  says: which of them send in the next
def broadcast(ranks, root):
    return [[[(root + d) % ranks, (root + d + 1) % ranks]] for d in range(ranks - 1)]
