# how: returns words that are lists and numbers
# exercise: experts.overlap
# earns: 0
# says: form
def overlap(layers, times):
    return [[["A0.0"], {"A": 0}], [1, None]]
