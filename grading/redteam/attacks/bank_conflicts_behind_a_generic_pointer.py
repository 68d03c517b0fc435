# how: a 32-way bank conflict through a pointer of which the compiler cannot tell that it leads to shared memory
# exercise: memory.padded
# earns: 2.2
@cuda.jit
def padded(a, out):
    own = cuda.local.array((32, 32), np.float32)
    tile = cuda.shared.array((32, 32), np.float32)
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    place = own if cuda.gridDim.z > 1 else tile
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        place[column, row] = a[y, x]
    cuda.syncthreads()
    x, y = 32 * cuda.blockIdx.y + column, 32 * cuda.blockIdx.x + row
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = place[row, column]
