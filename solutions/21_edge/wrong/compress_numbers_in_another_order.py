# exercise: edge.compress  fails: right  says: which unit's scale
import numpy as np


def compress(model, x, inputs, limit):
    outputs = len(model) - inputs
    active = np.maximum(x @ model[:inputs], 0)
    part = np.sqrt((active**2).mean(0)) * np.linalg.norm(model[inputs:], axis=0)
    room = (limit - 97 - 2 * outputs) // (inputs // 2 + outputs // 2 + 3)
    units = np.argsort(-part)[:room]

    def packed(weights, axis):
        scales = (np.abs(weights).max(axis, keepdims=True) / 7).astype(np.float16)
        scales[scales == 0] = 1
        codes = (np.clip(np.round(weights / scales), -8, 7) + 8).astype(np.uint8)
        return scales.ravel(), codes[::2] | codes[1::2] << 4

    scales_in, codes_in = packed(model[:inputs, units], 0)
    scales_out, codes_out = packed(model[inputs:, units], 1)
    found = {"units": np.sort(units).astype(np.uint8), "scales_in": scales_in, "codes_in": codes_in}
    return found | {"scales_out": scales_out, "codes_out": codes_out}
