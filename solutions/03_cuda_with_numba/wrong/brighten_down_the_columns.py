# exercise: basics.brighten  fails: load sectors  says: 24,576 sectors
from numba import float32

from gpulab import cuda


@cuda.jit
def brighten(image, gain, out):
    rows, cols = image.shape
    x, y = cuda.grid(2)
    width = cuda.gridDim.x * cuda.blockDim.x
    k = y * width + x  # number the pixels column by column
    if k < rows * cols:
        row, col = k % rows, k // rows
        out[row, col] = min(float32(1.0), gain * image[row, col])
