# how: CUDA C++ put together from pieces, with macros, templates and inline functions
# exercise: cpp.copy4
TYPE = "float"
pieces = [
    "#define FOR(i, first, last, step) for (int i = (first); i < (last); i += (step))",
    "template <typename V> __device__ __forceinline__ void move(const V* a, V* b, int i) { b[i] = a[i]; }",
    f'extern "C" __global__ void copy4(const {TYPE}* __restrict__ a, {TYPE}* __restrict__ b, int n) {{',
    "    const int first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;",
    "    FOR(i, first, n / 4, step) move((const float4*)a, (float4*)b, i);",
    "    const int tail = n & ~3;",
    "    if (first < n - tail) move(a, b, tail + first);",
    "}",
]
copy4 = cp.RawKernel("\n".join(pieces), "copy4", options=("--use_fast_math",))
