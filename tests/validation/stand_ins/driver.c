// Stands in for NVIDIA's driver where there is none, so that what surrounds a measurement can be tried: being
// stopped, permissions, versions, broken kernels. Its functions are those of cuda.h. It has three kernels, `copy`,
// `saxpy` and `ticks`, which it knows by name; it executes no machine code, and its times and clock mean nothing.

#define _GNU_SOURCE  // dladdr
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int number(const char* name, int otherwise)
{
    const char* text = getenv(name);
    return text ? atoi(text) : otherwise;
}

CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }

CUresult cuDriverGetVersion(int* version)
{
    *version = number("STAND_IN_CUDA", 13000);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) { return *count = 1, CUDA_SUCCESS; }

CUresult cuDeviceGet(CUdevice* device, int ordinal)
{
    *device = 0;
    return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device)
{
    const char* told = getenv("STAND_IN_GPU");
    snprintf(name, length, "%s", told ? told : "NVIDIA H200");
    return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute kind, CUdevice device)
{
    *value = kind == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9
        : kind == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE             ? 1 << 20
        : kind == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT      ? 132
                                                                : 0;
    return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* place, int length, CUdevice device)
{
    snprintf(place, length, "0000:01:00.0");
    return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name)
{
    *name = error == CUDA_ERROR_NOT_FOUND ? "CUDA_ERROR_NOT_FOUND" : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device)
{
    *context = (CUcontext)&cuInit;
    return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    return context == (CUcontext)&cuInit ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxSynchronize(void)
{
    return getenv("STAND_IN_FAULT") ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image)
{
    *module = (CUmodule)image;  // a cubin is an ELF file
    if (getenv("STAND_IN_OTHER_CODE"))
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    return memcmp(image, "\177ELF", 4) ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name)
{
    *function = (CUfunction)strdup(name);
    const char* missing = getenv("STAND_IN_MISSING");
    if (missing && !strcmp(missing, name))
        return CUDA_ERROR_NOT_FOUND;
    return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleUnload(CUmodule module) { return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute kind, int value)
{
    return function && kind == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value > 0
        ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAlloc(CUdeviceptr* at, size_t bytes)
{
    *at = (CUdeviceptr)calloc(bytes, 1);
    return bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFree(CUdeviceptr at) { return free((void*)at), CUDA_SUCCESS; }

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes)
{
    return memcpy((void*)to, from, bytes), CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes)
{
    return memcpy(to, (void*)from, bytes), CUDA_SUCCESS;
}

CUresult cuMemsetD8(CUdeviceptr at, unsigned char byte, size_t bytes)
{
    return memset((void*)at, byte, bytes), CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char byte, size_t bytes, CUstream stream)
{
    return memset((void*)at, byte, bytes), stream ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned flags)
{
    *event = (CUevent)calloc(1, sizeof(struct timespec));
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    clock_gettime(CLOCK_MONOTONIC, (struct timespec*)event);
    return stream ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end)
{
    struct timespec *a = (struct timespec*)start, *b = (struct timespec*)end;
    *milliseconds = (b->tv_sec - a->tv_sec) * 1e3f + (b->tv_nsec - a->tv_nsec) * 1e-6f;
    return *milliseconds < 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) { return free(event), CUDA_SUCCESS; }

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
    unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra)
{
    if (parameters || !extra || extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE
        || extra[4] != CU_LAUNCH_PARAM_END || stream || shared > 227 << 10 || bx * by * bz > 1024 || gx * gy * gz == 0)
        return CUDA_ERROR_INVALID_VALUE;
    char* packed = extra[1];
    size_t bytes = *(size_t*)extra[3];
    if (!strcmp((char*)function, "ticks") && bytes == 16) {
        unsigned long long* waited = *(unsigned long long**)(packed + 8);
        waited[0] = *(long long*)packed;
        waited[1] = waited[0] * 1000 / number("STAND_IN_MHZ", 1755);
        return CUDA_SUCCESS;
    }
    usleep(number("STAND_IN_SLOW", 0));
    float *x = *(float**)packed, *y = *(float**)(packed + 8);
    if (!strcmp((char*)function, "copy") && bytes == 20)
        memcpy(y, x, *(int*)(packed + 16) * sizeof(float));
    else if (!strcmp((char*)function, "saxpy") && bytes == 24)
        for (int i = 0; i < *(int*)(packed + 20); ++i)
            y[i] = *(float*)(packed + 16) * x[i] + y[i];
    return CUDA_SUCCESS;
}

// The name of before 12.8, which drivers still have.
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end)
{
    return cuEventElapsedTime_v2(milliseconds, start, end);
}

// NVRTC asks for it when a driver is there.
CUresult cuGetExportTable(const void** table, const CUuuid* which)
{
    *table = 0;
    return which ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

#undef cuGetProcAddress
CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
    CUdriverProcAddressQueryResult* status)
{
    char newer[256];
    snprintf(newer, sizeof newer, "%s_v2", name);
    static void* mine;
    Dl_info here;
    if (!mine && dladdr((void*)&cuInit, &here))
        mine = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    *function = mine ? dlsym(mine, newer) : 0;
    if (!*function && mine)
        *function = dlsym(mine, name);
    if (status)
        *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
