# exercise: arch.active_blocks  fails: right  says: first wrong: warps and blocks


def active_blocks(sm, threads, registers, shared):
    limits = [32 * sm["warps"] // threads, sm["blocks"], sm["registers"] // (registers * threads)]
    if shared:
        limits.append(sm["shared"] // shared)
    return min(limits)
