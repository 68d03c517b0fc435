# how: NumPy's stable argsort over all layers at once
# exercise: compress.ticket
import numpy as np


def ticket(initial, trained, sparsity):
    lengths = [len(layer) for layer in trained]
    flat = np.concatenate([np.asarray(layer, float) for layer in trained])
    kept = np.concatenate([np.asarray(layer, float) for layer in initial])
    gone = np.argsort(np.abs(flat), kind="stable")[: round(sparsity * flat.size)]
    kept[gone] = 0.0
    ends = np.cumsum(lengths)[:-1]
    return [part.tolist() for part in np.split(kept, ends)]
