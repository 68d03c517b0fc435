# exercise: basics.plan_launch  fails: right  says: should be
def plan_launch(rows, cols, block, slots):
    bx, by = block
    grid_x, grid_y = max(1, cols // bx), max(1, rows // by)
    if bx * by > 1024 or grid_y > 65_535:
        return None
    blocks = grid_x * grid_y
    return [grid_x, grid_y, blocks * bx * by - rows * cols, -(-blocks // slots)]
