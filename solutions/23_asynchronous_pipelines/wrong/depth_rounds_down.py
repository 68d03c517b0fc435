# exercise: async.depth  fails: right  says: should be


def depth(bandwidth, latency, sms, blocks, tile):
    return bandwidth * latency // (sms * blocks * tile) + 1  # a part of a tile is none
