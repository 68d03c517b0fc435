# how: a tuple where a list is expected, and integer division written with math.ceil
# exercise: basics.plan_launch
import math


def plan_launch(rows, cols, block, slots):
    bx, by = block
    grid = max(1, math.ceil(cols / bx)), max(1, math.ceil(rows / by))
    if bx * by > 1024 or grid[1] > 65_535:
        return None
    blocks = math.prod(grid)
    return (*grid, blocks * bx * by - rows * cols, math.ceil(blocks / slots))
