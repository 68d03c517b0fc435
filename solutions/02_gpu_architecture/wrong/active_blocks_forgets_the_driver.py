# exercise: arch.active_blocks  fails: right  says: shared memory


def active_blocks(sm, threads, registers, shared):
    def up(value, step):
        return -(-value // step) * step

    warps = -(-threads // 32)
    of_warp = up(32 * registers, sm["register_step"])
    if threads > sm["threads_per_block"] or registers > sm["registers_per_thread"]:
        return 0
    limits = [sm["warps"] // warps, sm["blocks"], 4 * (sm["registers"] // 4 // of_warp) // warps]
    if shared:
        limits.append(sm["shared"] // up(shared, sm["shared_step"]))
    return min(limits)
