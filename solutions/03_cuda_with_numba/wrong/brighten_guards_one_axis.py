# exercise: basics.brighten  fails: right  says: brighten
from numba import float32

from gpulab import cuda


@cuda.jit
def brighten(image, gain, out):
    x, y = cuda.grid(2)
    if y < image.shape[0]:
        out[y, x] = min(float32(1.0), gain * image[y, x])
