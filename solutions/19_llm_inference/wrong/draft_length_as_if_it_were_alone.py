# exercise: decode.draft_length  fails: right  says: first wrong: batches


def draft_length(acceptance, draft, batch, ridge, most):
    best = [0, 0.0]
    for k in range(most + 1):
        tokens = sum(acceptance**i for i in range(k + 1))
        speed = tokens / (k * draft + max(1, (k + 1) / ridge))
        if speed > best[1]:
            best = [k, speed]
    return best
