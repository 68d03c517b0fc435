# exercise: bits.cast  fails: right  says: should be
import numpy as np

from gpulab import numerics


def cast(tensors, length, recipe):
    amaxes, out = [], []
    for tensor in tensors:
        x = np.array(tensor, np.float32)
        own = float(np.abs(x).max())
        amaxes.append(own)
        known = max(amaxes[-length:], default=0.0) if recipe == "delayed" else own
        largest = known or own
        scale = 448 / largest if largest else 1.0
        short = numerics.quantize(np.clip(x * scale, -448, 448), "E4M3")
        out.append((short / scale).tolist())
    return out
