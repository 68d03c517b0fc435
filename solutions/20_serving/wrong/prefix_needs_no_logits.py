# exercise: serve.prefix  fails: right  says: first wrong:


def prefix(prompts, capacity, size):
    used, hits = {}, []
    for now, prompt in enumerate(prompts):
        blocks = [tuple(prompt[:end]) for end in range(size, len(prompt) + 1, size)]
        found = 0
        while found < len(blocks) and blocks[found] in used:
            found += 1
        hits.append(found)
        for block in blocks:
            used[block] = now
        while len(used) > capacity:
            del used[min(used, key=lambda block: (used[block], -len(block)))]
    return hits
