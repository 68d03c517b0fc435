# exercise: shard.recompute  fails: recomputed  says: recomputed
def recompute(layers, batch, sequence, width, heads, memory):
    unit = sequence * batch * width
    every, some, inputs = unit * (34 + 5 * heads * sequence / width), 34 * unit, 2 * unit
    free = memory - layers * inputs
    cheap = min(layers, int(free // (some - inputs)))
    whole = min(cheap, int((free - cheap * (some - inputs)) // (every - some)))
    return [whole, cheap - whole, layers - cheap]
