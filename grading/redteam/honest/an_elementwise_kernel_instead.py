# how: a kernel compiled inside the function at every call
# exercise: cpp.scale
def scale(x, factor):
    if not x.size:
        return None
    name = {"f4": "float", "f8": "double", "i4": "int"}[x.dtype.str[1:]]
    source = f'extern "C" __global__ void s({name}* x, {name} f, int n)'
    source += "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = f * x[i]; }"
    kernel = cp.RawKernel(source, "s")
    kernel(((x.size + 511) // 512,), (512,), (x, x.dtype.type(factor), np.int32(x.size)))
