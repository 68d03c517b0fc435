# how: rounds up by the remainder of a division
# exercise: async.depth
def depth(bandwidth, latency, sms, blocks, tile):
    whole, rest = divmod(bandwidth * latency, sms * blocks * tile)
    return whole + (rest > 0) + 1
