// Accesses outside arrays, misaligned, or through nothing. With MENDED they are right.

__constant__ float weights[4] = {1, 2, 3, 4};

extern "C" __global__ void a_vector_is_read_from_an_odd_place(const float* x, float* y)
{
#ifdef MENDED
    const float4* from = (const float4*)x;
#else
    const float4* from = (const float4*)(x + 1);
#endif
    float4 four = from[threadIdx.x];  // here
    y[threadIdx.x] = four.x + four.y + four.z + four.w;
}

extern "C" __global__ void bytes_are_read_as_words(const unsigned char* octets, int* y)
{
    int t = threadIdx.x;
#ifdef MENDED
    int start = 4 * (t / 4);
#else
    int start = t;
#endif
    y[t] = *(const int*)(octets + start);  // here
}

extern "C" __global__ void a_missing_array_is_read(const float* x, const float* bias, float* y)
{
    int t = threadIdx.x;
    y[t] = x[t];
#ifdef MENDED
    if (bias)
#endif
        y[t] += bias[t];  // here
}

extern "C" __global__ void a_constant_array_is_too_short(const float* x, float* y, int n)
{
    int t = threadIdx.x;
#ifdef MENDED
    n = 4;
#endif
    float sum = 0;
    for (int k = 0; k < n; ++k)
        sum += weights[k] * x[t + k];  // here
    y[t] = sum;
}

extern "C" __global__ void the_launch_gives_no_dynamic_shared_memory(const float* x, float* y)
{
    extern __shared__ float tile[];
    int t = threadIdx.x;
#ifdef MENDED
    y[t] = x[t];
#else
    tile[t] = x[t];  // here
    y[t] = tile[t];
#endif
}

extern "C" __global__ void a_local_array_is_overrun(const int* x, int* y)
{
    int mine[4];
    int t = threadIdx.x;
    for (int k = 0; k < 4; ++k)
        mine[k] = x[(t + k) % 64];
#ifdef MENDED
    y[t] = mine[x[t] % 4];
#else
    y[t] = mine[x[t] * 4];  // here
#endif
}

extern "C" __global__ void a_halo_reads_before_the_array(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef MENDED
    if (i > 0)
#endif
        y[i] = x[i - 1];  // here
}

extern "C" __global__ void an_assertion_fails(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef MENDED
    if (i >= n)
        return;
#endif
    assert(i < n);  // here
    y[i] = x[i];
}

extern "C" __global__ void the_last_block_has_no_guard(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef MENDED
    if (i < n)
#endif
        y[i] = 2 * x[i];  // here
}

extern "C" __global__ void a_fresh_array_is_added_to(const float* x, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef MENDED
    y[i] = x[i];
#else
    y[i] += x[i];  // here
#endif
}

extern "C" __global__ void a_vector_of_shared_memory_begins_at_an_odd_place(const float* x, float* y)
{
    __shared__ __align__(16) float s[80];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    if (t < 16) {
#ifdef MENDED
        float4 v = reinterpret_cast<float4*>(s)[t];
#else
        float4 v = *reinterpret_cast<float4*>(s + 2 * t + 2);  // here
#endif
        y[t] = v.x + v.y + v.z + v.w;
    }
}

extern "C" __global__ void a_product_of_indices_overflows(float* y, int n)
{
    int t = threadIdx.x;
#ifdef MENDED
    long long at = (long long)t * n % 64;
#else
    int at = t * n % 64;
#endif
    y[at] = t;  // here
}
