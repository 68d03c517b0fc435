# exercise: cupy.winograd  fails: right  says: comes 2 times
def winograd():
    return {
        "inputs": [[1, 0, -1, 0], [0, 1, 1, 0], [0, 1, -1, 0], [0, 1, 0, -1]],
        "weights": [[1, 0, 0], [1, 1, 1], [-1, 1, -1], [0, 0, 1]],
        "outputs": [[1, 1, 1, 0], [0, 1, -1, -1]],
    }
