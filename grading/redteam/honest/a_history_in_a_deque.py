# how: keeps the last amaxes in a deque of that length
# exercise: bits.cast
from collections import deque


def cast(tensors, length, recipe):
    history, result = deque(maxlen=length), []
    for values in tensors:
        x = np.asarray(values, dtype=np.float32)
        own = float(max(abs(x)))
        amax = (max(history, default=0.0) or own) if recipe == "delayed" else own
        history.append(own)
        scale = 448.0 / amax if amax > 0 else 1.0
        cut = np.minimum(np.maximum(x * scale, -448), 448)
        result.append([float(each) for each in numerics.quantize(cut, "E4M3") / scale])
    return result
