// Waits for so many cycles and says how many it has waited, and for how many nanoseconds: their ratio is the
// clock of the SMs. With 0 cycles it is a kernel that does nothing.

__device__ unsigned long long nanoseconds()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

extern "C" __global__ void ticks(long long cycles, unsigned long long* waited)
{
    const unsigned long long begun = nanoseconds();
    const long long start = clock64();
    while (clock64() - start < cycles)
        ;
    waited[0] = clock64() - start;
    waited[1] = nanoseconds() - begun;
}
