# how: walks down the columns of both images, a lane at a time: one sector a request
# exercise: basics.brighten
# earns: 2
# says: load sectors … naive
@cuda.jit
def brighten(image, gain, out):
    x, y = cuda.grid(2)
    number = x + y * cuda.blockDim.x * cuda.gridDim.x
    threads = cuda.blockDim.x * cuda.gridDim.x * cuda.blockDim.y * cuda.gridDim.y
    for k in range(number, image.size, threads):
        row, column = k % image.shape[0], k // image.shape[0]
        for lane in range(32):
            if cuda.laneid == lane:
                out[row, column] = min(float32(1.0), gain * image[row, column])
