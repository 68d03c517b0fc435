# how: two loops over blocks, a scale of each in Python's numbers, and arrays that are filled piece by piece
# exercise: bits.tiles
def tiles(x, rows, columns, powers):
    m, n = x.shape
    grid = -(-m // rows), -(-n // columns)
    codes = np.empty((m, n), np.uint8)
    scales = np.empty(grid, np.uint8 if powers else np.float32)
    for place in np.ndindex(*grid):
        here = tuple(slice(i * step, (i + 1) * step) for i, step in zip(place, (rows, columns), strict=True))
        part = x[here]
        largest = float(np.abs(part).max()) or 448.0
        if powers:
            exponent = math.ceil(math.log2(largest / 448))
            scales[place], scale = exponent + 127, 2.0**exponent
        else:
            scales[place] = largest / 448
            scale = scales[place]
        codes[here] = numerics.encode((part / scale).astype(np.float32), "E4M3", saturate=True)
    return dict(scales=scales, codes=codes)
