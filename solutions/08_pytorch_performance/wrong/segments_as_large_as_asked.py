# exercise: pytorch.segments  fails: right  says: first wrong: one
def segments(events):
    reserved, total = [], 0
    for name, size in events:
        if size:
            size = -(-size // 512) * 512
            fitting = [
                (block[0], i, k)
                for i, blocks in enumerate(reserved)
                for k, block in enumerate(blocks)
                if block[1] is None and block[0] >= size
            ]
            if not fitting:
                whole = max(size, 2 * 2**20)
                fitting = [(whole, len(reserved), 0)]
                reserved.append([[whole, None]])
                total += whole
            room, i, k = min(fitting)
            reserved[i][k] = [size, name]
            if room > size:
                reserved[i].insert(k + 1, [room - size, None])
            continue
        for blocks in reserved:
            for k, block in enumerate(blocks):
                if block[1] == name:
                    block[1] = None
                    for left in (k, k - 1):
                        if (
                            0 <= left < len(blocks) - 1
                            and blocks[left][1] is None
                            and blocks[left + 1][1] is None
                        ):
                            blocks[left][0] += blocks.pop(left + 1)[0]
                    break
    return [len(reserved), total]
