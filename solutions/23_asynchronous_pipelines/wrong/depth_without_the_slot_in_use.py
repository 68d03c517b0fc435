# exercise: async.depth  fails: right  says: should be


def depth(bandwidth, latency, sms, blocks, tile):
    return -(-bandwidth * latency // (sms * blocks * tile))  # and the tile that is worked on?
