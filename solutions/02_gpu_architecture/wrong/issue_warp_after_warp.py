# exercise: arch.issue  fails: few warps  says: which other warp is ready


def issue(programs):
    return [warp for warp, program in enumerate(programs) for _ in program]
