// CUDA's functions, as the program finds them: each name leads to the address that `gpulab_answers` has for it
// when the program is loaded. names.h lists what the program calls, as NAME(number, name).

#include <stddef.h>

#include <cuda_runtime_api.h>

#define NAME(number, name) +1
void *gpulab_answers[0
#include "names.h"
];
#undef NAME

#define NAME(number, name)                                                                                   \
    static void *answer_##number(void) { return gpulab_answers[number]; }                                    \
    void call_##number(void) __asm__(#name) __attribute__((ifunc("answer_" #number)));
#include "names.h"

// Where this version of CUDA has the fields of its structures.
#define FIELD(type, field) {#type "." #field, offsetof(struct type, field), sizeof(((struct type *)0)->field)},
#define WHOLE(type) {#type, 0, sizeof(struct type)},
const struct {
    const char *name;
    int offset, size;
} gpulab_fields[] = {
    WHOLE(cudaDeviceProp)
    FIELD(cudaDeviceProp, name)
    FIELD(cudaDeviceProp, totalGlobalMem)
    FIELD(cudaDeviceProp, sharedMemPerBlock)
    FIELD(cudaDeviceProp, regsPerBlock)
    FIELD(cudaDeviceProp, warpSize)
    FIELD(cudaDeviceProp, maxThreadsPerBlock)
    FIELD(cudaDeviceProp, maxThreadsDim)
    FIELD(cudaDeviceProp, maxGridSize)
    FIELD(cudaDeviceProp, totalConstMem)
    FIELD(cudaDeviceProp, major)
    FIELD(cudaDeviceProp, minor)
    FIELD(cudaDeviceProp, multiProcessorCount)
    FIELD(cudaDeviceProp, canMapHostMemory)
    FIELD(cudaDeviceProp, l2CacheSize)
    FIELD(cudaDeviceProp, maxThreadsPerMultiProcessor)
    FIELD(cudaDeviceProp, maxBlocksPerMultiProcessor)
    FIELD(cudaDeviceProp, sharedMemPerMultiprocessor)
    FIELD(cudaDeviceProp, sharedMemPerBlockOptin)
    FIELD(cudaDeviceProp, reservedSharedMemPerBlock)
    FIELD(cudaDeviceProp, regsPerMultiprocessor)
    FIELD(cudaDeviceProp, unifiedAddressing)
    FIELD(cudaDeviceProp, managedMemory)
    FIELD(cudaDeviceProp, cooperativeLaunch)
    FIELD(cudaDeviceProp, concurrentManagedAccess)
#if CUDART_VERSION < 13000
    FIELD(cudaDeviceProp, clockRate)
#endif
    WHOLE(cudaFuncAttributes)
    FIELD(cudaFuncAttributes, sharedSizeBytes)
    FIELD(cudaFuncAttributes, constSizeBytes)
    FIELD(cudaFuncAttributes, localSizeBytes)
    FIELD(cudaFuncAttributes, maxThreadsPerBlock)
    FIELD(cudaFuncAttributes, numRegs)
    FIELD(cudaFuncAttributes, ptxVersion)
    FIELD(cudaFuncAttributes, binaryVersion)
    FIELD(cudaFuncAttributes, maxDynamicSharedSizeBytes)
    FIELD(cudaFuncAttributes, preferredShmemCarveout)
    {0, 0, 0},
};
