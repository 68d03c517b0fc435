// Kernels that are wrong between blocks. With MENDED they are right; comments mark the lines of the finding.

__device__ int hits;
__device__ float sums[8];

extern "C" __global__ void the_last_block_sums_without_a_fence(const float* x, float* partial, unsigned* done, float* y)
{
    if (threadIdx.x == 0) {
        float sum = 0;
        for (int k = 0; k < 32; ++k)
            sum += x[32 * blockIdx.x + k];
        partial[blockIdx.x] = sum;  // first
#ifdef MENDED
        __threadfence();
#endif
        if (atomicInc(done, gridDim.x) == gridDim.x - 1) {
            __threadfence();
            float whole = 0;
            for (int k = 0; k < gridDim.x; ++k)
                whole += partial[k];  // second
            y[0] = whole;
        }
    }
}

extern "C" __global__ void a_volatile_flag_is_raised_without_a_fence(float* data, volatile int* flag, float* y)
{
    if (blockIdx.x == 0) {
        data[0] = 42;  // first
#ifdef MENDED
        __threadfence();
#endif
        *flag = 1;
    } else {
        while (*flag == 0)
            ;
        __threadfence();
        y[0] = data[0];  // second
    }
}

extern "C" __global__ void a_fence_reaches_only_its_block(float* data, int* flag, float* y)
{
    if (blockIdx.x == 0) {
        data[0] = 42;  // first
#ifdef MENDED
        __threadfence();
#else
        __threadfence_block();
#endif
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0)
            ;
        __threadfence();
        y[0] = data[0];  // second
    }
}

extern "C" __global__ void an_atomic_of_one_block_serves_many(int* y)
{
#ifdef MENDED
    atomicAdd(y, 1);
#else
    atomicAdd_block(y, 1);  // first, second
#endif
}

extern "C" __global__ void a_counter_is_reset_by_one_block(int* count, int* y)
{
#ifndef MENDED
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *count = 0;  // first
#endif
    atomicAdd(count, 1);  // second
}

extern "C" __global__ void a_variable_of_the_module_counts_without_an_atomic(const float* x, int* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] > 3) {
#ifdef MENDED
        atomicAdd(&hits, 1);
#else
        hits += 1;  // first, second
#endif
    }
}

extern "C" __global__ void blocks_share_the_sums_of_the_module(const float* x, float* y)
{
    int t = threadIdx.x;
#ifdef MENDED
    y[8 * blockIdx.x + t] = x[8 * blockIdx.x + t];
#else
    sums[t] = x[8 * blockIdx.x + t];  // first, second
    y[8 * blockIdx.x + t] = sums[t];
#endif
}

extern "C" __global__ void half_precision_neighbours_go_through_words(unsigned short* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef MENDED
    y[i] = i;
#else
    unsigned* word = (unsigned*)y + i / 2;
    unsigned shift = 16 * (i % 2);
    *word = (*word & ~(0xffffu << shift)) | (unsigned)i << shift;  // first, second
#endif
}

extern "C" __global__ void two_blocks_write_one_element(const float* x, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef MENDED
    y[i] = x[i];
#else
    y[threadIdx.x] = x[i];  // first, second
#endif
}

extern "C" __global__ void a_block_reads_what_another_one_writes(const float* x, float* z, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    z[i] = 2 * x[i];  // first
#ifdef MENDED
    y[i] = z[i];
#else
    y[i] = z[n - 1 - i];  // second
#endif
}

extern "C" __global__ void nobody_raises_the_flag_that_is_waited_for(int* flags, float* y)
{
    if (blockIdx.x == 0) {
        while (atomicAdd(&flags[0], 0) == 0)  // here
            ;
        y[0] = 1;
    } else {
#ifdef MENDED
        atomicExch(&flags[0], 1);
#else
        atomicExch(&flags[1], 1);
#endif
    }
}

extern "C" __global__ void floats_are_added_in_any_order(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef MENDED
    if (i == 0) {
        float total = 0;
        for (int k = 0; k < n; ++k)
            total += x[k];
        y[0] = total;
    }
#else
    atomicAdd(y, x[i]);  // here
#endif
}

extern "C" __global__ void places_are_taken_first_come_first_served(const float* x, int* count, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef MENDED
    y[i] = x[i];
#else
    if (x[i] > 10)
        y[atomicAdd(count, 1)] = x[i];  // here
#endif
}

// ---- right as they are

extern "C" __global__ void a_volatile_flag_behind_a_fence(float* data, volatile int* flag, float* y)
{
    if (blockIdx.x == 0) {
        data[0] = 42;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0)
            ;
        __threadfence();
        y[0] = data[0];
    }
}

extern "C" __global__ void a_grid_barrier_that_is_used_twice(volatile unsigned* arrived, float* x)
{
    for (unsigned phase = 1; phase <= 2; ++phase) {
        x[blockIdx.x * 2 + phase % 2] = phase + x[(blockIdx.x + 1) % gridDim.x * 2 + (phase + 1) % 2];
        __threadfence();
        atomicAdd((unsigned*)arrived, 1);
        while (*arrived < phase * gridDim.x)
            ;
        __threadfence();
    }
}

extern "C" __global__ void each_block_adds_what_the_one_before_left(const float* x, float* sums, int n)
{
    int t = threadIdx.x, b = blockIdx.x;
    if (t == 0) {
        float before = 0;
#ifdef MENDED
        for (int k = 0; k <= b; ++k) before += x[k];
        sums[b] = before;
#else
        if (b > 0) before = sums[b - 1];  // first
        sums[b] = before + x[b];  // second
#endif
    }
}

extern "C" __global__ void the_reader_of_a_flag_has_no_fence(float* data, volatile int* flag, float* y)
{
    if (blockIdx.x == 0) {
        data[0] = 42;  // first
        __threadfence();
        flag[0] = 1;
    } else {
        while (flag[0] == 0) { }
#ifdef MENDED
        __threadfence();
#endif
        y[0] = data[0];  // second
    }
}

extern "C" __global__ void the_reader_fences_only_for_its_block(float* data, int* flag, float* y)
{
    if (blockIdx.x == 0) {
        data[0] = 42;  // first
        __threadfence();
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) { }
#ifdef MENDED
        __threadfence();
#else
        __threadfence_block();
#endif
        y[0] = data[0];  // second
    }
}

extern "C" __global__ void a_lock_has_no_fences(int* lock, int* counter)
{
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) { }
#ifdef MENDED
        __threadfence();
#endif
        counter[0] = counter[0] + 1;  // first, second
#ifdef MENDED
        __threadfence();
#endif
        atomicExch(lock, 0);
    }
}

extern "C" __global__ void a_lock_of_the_block_has_no_fences(int* counter)
{
    __shared__ int lock;
    if (threadIdx.x == 0) lock = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS_block(&lock, 0, 1) != 0) { }
#ifdef MENDED
        __threadfence_block();
#endif
        counter[blockIdx.x] += 1;  // first, second
#ifdef MENDED
        __threadfence_block();
#endif
        atomicExch_block(&lock, 0);
    }
}

extern "C" __global__ void a_fence_is_no_barrier(float* x, float* y)
{
    int t = threadIdx.x;
    x[t] = t;  // first
#ifdef MENDED
    __syncthreads();
#else
    __threadfence_block();
#endif
    y[t] = x[63 - t];  // second
}

extern "C" __global__ void the_read_only_path_reads_what_was_written(float* x, const float* __restrict__ z, float* y)
{
    int t = threadIdx.x;
    x[t] = 3 * t;  // first
#ifdef MENDED
    __syncthreads();
#endif
    y[t] = z[63 - t];  // second
}

extern "C" __global__ void the_last_block_reads_as_volatile(const float* x, volatile float* partial, unsigned* done, float* y)
{
    __shared__ bool last;
    if (threadIdx.x == 0) {
        float sum = 0;
        for (int k = 0; k < 32; ++k) sum += x[32 * blockIdx.x + k];
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(done, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float whole = 0;
        for (int k = 0; k < gridDim.x; ++k) whole += partial[k];
        y[0] = whole;
    }
}

extern "C" __global__ void a_thread_block_scoped_flag_in_shared_memory(const float* x, float* y)
{
    __shared__ float box[32];
    __shared__ int full;
    int t = threadIdx.x;
    if (t == 0) full = 0;
    __syncthreads();
    if (t < 32) {
        box[t] = x[t];
        __syncwarp();
        __threadfence_block();
        if (t == 0) atomicExch_block(&full, 1);
    } else if (t >= 32) {
        while (atomicAdd_block(&full, 0) == 0) { }
        __threadfence_block();
        y[t - 32] = box[t - 32];
    }
}
