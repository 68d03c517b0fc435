# exercise: basics.brighten  fails: load sectors  says: 12 × what each element once needs
from numba import float32

from gpulab import cuda


@cuda.jit
def brighten(image, gain, out):
    x, y = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x, cuda.threadIdx.y
    for row in range(y, image.shape[0], cuda.blockDim.y):
        if x < image.shape[1]:
            out[row, x] = min(float32(1.0), gain * image[row, x])
