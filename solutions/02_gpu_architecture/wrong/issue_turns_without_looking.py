# exercise: arch.issue  fails: few warps  says: × the bound


def issue(programs):
    longest = max(map(len, programs))
    return [warp for step in range(longest) for warp, program in enumerate(programs) if step < len(program)]
