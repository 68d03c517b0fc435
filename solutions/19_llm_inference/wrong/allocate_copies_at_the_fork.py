# exercise: kv.allocate  fails: blocks  says: same contents


def allocate(operations, size, blocks):
    owner, tables, lengths, plan = [None] * blocks, {}, {}, []
    for kind, name, *more in operations:
        actions = []
        if kind == "free":
            for block in tables.pop(name):
                owner[block] = None
        elif kind == "fork":
            child, lengths[more[0]] = more[0], lengths[name]
            free = [block for block in range(blocks) if owner[block] is None]
            tables[child] = free[: len(tables[name])]
            actions = [["copy", index, block] for index, block in enumerate(tables[child])]
            for block in tables[child]:
                owner[block] = child
        else:
            table, length = tables.get(name, []), lengths.get(name, 0)
            end = length + (more[0] if kind == "start" else 1)
            free = [block for block in range(blocks) if owner[block] is None]
            missing = -(-end // size) - len(table)
            if missing > len(free):
                plan.append("full")
                continue
            for block in free[:missing]:
                owner[block] = name
                table.append(block)
                actions.append(["take", block])
            tables[name], lengths[name] = table, end
        plan.append(actions)
    return plan
