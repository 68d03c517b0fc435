# exercise: basics.brighten  fails: right  says: 33 × 65
from numba import float32

from gpulab import cuda


@cuda.jit
def brighten(image, gain, out):
    x, y = cuda.grid(2)
    if x < image.shape[0] and y < image.shape[1]:
        out[x, y] = min(float32(1.0), gain * image[x, y])
