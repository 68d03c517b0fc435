# how: returns pieces that are numbers, lists of other lengths, and names that are lists
# exercise: fleet.reads
# earns: 0
# says: form
def reads(saved, wanted):
    reads.turn = getattr(reads, "turn", 0) + 1
    return [[5], [["rank0.bin", 1, 2, 3]], [[["rank0.bin"], [0, 0], [1, 1], [0, 0]]], [[{}, [], [], []]]][
        reads.turn % 4
    ]
