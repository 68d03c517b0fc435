# exercise: decode.draft_length  fails: right  says: ZeroDivisionError


def draft_length(acceptance, draft, batch, ridge, most):
    def reads(tokens):
        return max(1, tokens / ridge)

    best = [0, 0.0]
    for k in range(most + 1):
        tokens = (1 - acceptance ** (k + 1)) / (1 - acceptance)
        speed = tokens * reads(batch) / (k * draft * reads(batch) + reads(batch * (k + 1)))
        if speed > best[1]:
            best = [k, speed]
    return best
