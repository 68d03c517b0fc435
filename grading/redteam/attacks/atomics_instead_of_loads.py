# how: reads every element by adding nothing to it, which no budget on loads counts
# exercise: memory.transpose
# earns: 1.6
# says: load sectors
@cuda.jit
def transpose(a, out):
    x = cuda.blockIdx.y * 32 + cuda.threadIdx.x
    y = cuda.blockIdx.x * 32 + cuda.threadIdx.y
    if x < a.shape[0] and y < a.shape[1]:
        out[y, x] = cuda.atomic.add(a, (x, y), np.float32(0))
