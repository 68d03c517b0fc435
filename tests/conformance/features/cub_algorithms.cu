// feature: CUB: algorithms of the device
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_select.cuh>
struct Odd { __device__ bool operator()(int v) const { return v % 2; } };
int main() {
    int *x, *out, *count, host[300], n = 0;
    for (int i = 0; i < 300; i++) host[i] = i;
    cudaMallocManaged(&x, sizeof host), cudaMallocManaged(&out, sizeof host), cudaMallocManaged(&count, 4);
    for (int i = 0; i < 300; i++) x[i] = i;
    void *room = nullptr;
    size_t bytes = 0;
    for (int pass = 0; pass < 2; pass++) {
        cub::DeviceSelect::If(room, bytes, x, out, count, 300, Odd());
        if (!pass) cudaMalloc(&room, bytes);
    }
    cudaDeviceSynchronize(), n = *count;
    return !(n == 150 && out[149] == 299);
}
