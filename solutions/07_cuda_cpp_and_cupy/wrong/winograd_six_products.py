# exercise: cupy.winograd  fails: products  says: 6 products
def winograd():
    return {
        "inputs": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        "weights": [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
        "outputs": [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]],
    }
