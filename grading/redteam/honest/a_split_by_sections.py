# how: narrows the number of parameters down by comparing two places between its bounds
# exercise: scaling.split
def split(law, flops, served):
    e, of_size, a, of_tokens, b = law

    def loss(log):
        n = math.exp(log)
        left = flops - 2 * n * served
        return e + of_size * n**-a + of_tokens * (left / (6 * n)) ** -b if left > 0 else math.inf

    low, high = math.log(1e5), math.log(flops / (2 * served) if served else 1e15)
    for _ in range(200):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, second) if loss(first) < loss(second) else (first, high)
    return math.exp(low)
