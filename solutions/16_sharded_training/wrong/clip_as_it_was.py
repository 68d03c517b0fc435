# exercise: shard.clip  fails: right  says: clipped[
def clip(gradient, limit):
    norm = gradient.norm()
    return gradient * (limit / norm) if norm > limit else gradient
