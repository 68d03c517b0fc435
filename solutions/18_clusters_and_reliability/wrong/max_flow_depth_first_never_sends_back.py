# exercise: cluster.max_flow  fails: right  says: first wrong:


def max_flow(links, source, sink):
    left = {source: {}, sink: {}}
    for a, b, rate in links:
        left.setdefault(a, {})[b] = left.get(a, {}).get(b, 0) + rate
        left.setdefault(b, {})

    def send(node, most, seen):
        if node == sink:
            return most
        seen.add(node)
        for after, rest in left[node].items():
            if rest and after not in seen:
                sent = send(after, min(most, rest), seen)
                if sent:
                    left[node][after] -= sent
                    return sent
        return 0

    total = 0
    while sent := send(source, float("inf"), set()):
        total += sent
    return total
