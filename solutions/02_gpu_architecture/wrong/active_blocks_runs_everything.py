# exercise: arch.active_blocks  fails: right  says: cannot run


def active_blocks(sm, threads, registers, shared):
    def up(value, step):
        return -(-value // step) * step

    warps = -(-threads // 32)
    of_warp = up(32 * registers, sm["register_step"])
    limits = [sm["warps"] // warps, sm["blocks"], 4 * (sm["registers"] // 4 // of_warp) // warps]
    of_block = up(shared + sm["shared_kept"], sm["shared_step"])
    if of_block:
        limits.append(sm["shared"] // of_block)
    return min(limits)
