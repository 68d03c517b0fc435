// feature: launches from several threads of the host
#include <thread>
#include <vector>
__global__ void add(int *a) { atomicAdd(a, 1); }
int main() {
    int *a;
    cudaMallocManaged(&a, 4);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) threads.emplace_back([&] { add<<<2, 32>>>(a), cudaDeviceSynchronize(); });
    for (auto &each : threads) each.join();
    return *a != 256;
}
