# exercise: kv.allocate  fails: copies  says: before somebody writes


def allocate(operations, size, blocks):
    holders = [0] * blocks
    tables, lengths, plan = {}, {}, []
    for kind, name, *more in operations:
        actions = []
        if kind == "fork":
            tables[more[0]], lengths[more[0]] = list(tables[name]), lengths[name]
            for block in tables[name]:
                holders[block] += 1
            free = [block for block in range(blocks) if not holders[block]]
            if lengths[name] % size and free:
                holders[tables[name][-1]] -= 1
                tables[more[0]][-1], holders[free[0]] = free[0], 1
                actions.append(["copy", len(tables[name]) - 1, free[0]])
        elif kind == "free":
            for block in tables.pop(name):
                holders[block] -= 1
            del lengths[name]
        else:
            table, length = tables.get(name, []), lengths.get(name, 0)
            end = length + (more[0] if kind == "start" else 1)
            last = length // size
            shared = last < len(table) and holders[table[last]] > 1
            missing = -(-end // size) - len(table)
            free = [block for block in range(blocks) if not holders[block]]
            if missing + shared > len(free):
                plan.append("full")
                continue
            if shared:
                block = free.pop(0)
                holders[table[last]] -= 1
                holders[block], table[last] = 1, block
                actions.append(["copy", last, block])
            for block in free[:missing]:
                holders[block] = 1
                table.append(block)
                actions.append(["take", block])
            tables[name], lengths[name] = table, end
        plan.append(actions)
    return plan
