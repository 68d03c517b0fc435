# how: sorts the scores of all nodes at once in NumPy
# exercise: experts.limited
def limited(scores, nodes, most, k):
    grid = np.array(scores).reshape(nodes, -1)
    worth = np.sort(grid, axis=1)[:, ::-1][:, : k // most].sum(1)
    masked = np.full_like(grid, -1.0)
    chosen = np.argsort(worth)[::-1][:most]
    masked[chosen] = grid[chosen]
    return sorted(int(e) for e in np.argsort(masked.ravel())[::-1][:k])
