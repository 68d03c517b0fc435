# exercise: decode.draft_length  fails: right  says: first wrong:


def draft_length(acceptance, draft, batch, ridge, most):
    def reads(tokens):
        return max(1, tokens / ridge)

    best = [0, 1.0]
    for k in range(1, most + 1):
        tokens = sum(acceptance**i for i in range(1, k + 1))
        speed = tokens * reads(batch) / (k * draft * reads(batch) + reads(batch * (k + 1)))
        if speed > best[1]:
            best = [k, speed]
    return best
