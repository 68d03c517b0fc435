# how: each thread brightens rows that lie a grid apart
# exercise: basics.brighten
@cuda.jit
def brighten(image, gain, out):
    x0, y0 = cuda.grid(2)
    step_x, step_y = cuda.gridsize(2)
    rows, cols = image.shape
    for y in range(y0, rows, step_y):
        for x in range(x0, cols, step_x):
            bright = gain * image[y, x]
            out[y, x] = bright if bright < 1 else 1
