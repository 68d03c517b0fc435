# how: the geometric series in closed form, with its limit at 1
# exercise: decode.draft_length
def draft_length(acceptance, draft, batch, ridge, most):
    def cost(tokens):
        return max(tokens / ridge, 1)

    def expected(k):
        if acceptance == 1:
            return k + 1
        return (1 - acceptance ** (k + 1)) / (1 - acceptance)

    def gain(k):
        return expected(k) * cost(batch) / (k * draft * cost(batch) + cost(batch * (k + 1)))

    best = max(range(most + 1), key=gain)
    return [best, gain(best)]
