# how: the window as a tuple that is rotated, in double precision for the sum
# exercise: memory.smooth
@cuda.jit
def smooth(a, out):
    column = cuda.grid(1)
    if column >= a.shape[1]:
        return
    zero = np.float64(0)
    window = (zero, zero, zero)
    for row in range(a.shape[0]):
        new = np.float64(a[row, column])
        out[row, column] = np.float32((new + window[0] + window[1] + window[2]) / 4)
        window = (new, window[0], window[1])
