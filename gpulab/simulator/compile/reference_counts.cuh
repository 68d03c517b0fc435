// What numba's kernels call for arrays that its memory manager (NRT) may have made. Those that a kernel is given
// or holds as constants have no such count: their pointer is null.

extern "C" __device__ void NRT_incref(unsigned long long *count)
{
    if (count)
        atomicAdd(count, 1ull);
}

extern "C" __device__ void NRT_decref(unsigned long long *count)
{
    if (count)
        atomicAdd(count, ~0ull);
}
