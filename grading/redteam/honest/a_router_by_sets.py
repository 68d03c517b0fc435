# how: takes the replica with the least work by enumerate and takewhile
# exercise: fleet.route
from itertools import takewhile


def route(blocks, replicas):
    best, least = 0, float("inf")
    for number, replica in enumerate(replicas):
        known = len(list(takewhile(set(replica["cached"]).__contains__, blocks)))
        if replica["queued"] + len(blocks) - known < least:
            best, least = number, replica["queued"] + len(blocks) - known
    return best
