// feature: streams, events, callbacks, copies that do not wait
__global__ void add(int *a, int v) { a[threadIdx.x] += v; }
void CUDART_CB raise(void *p) { *(int *)p += 1; }
int main() {
    int *a, called = 0, host[32] = {};
    cudaStream_t s[2];
    cudaEvent_t e;
    cudaMalloc(&a, sizeof host);
    cudaEventCreate(&e);
    for (auto &each : s) cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking);
    cudaMemcpyAsync(a, host, sizeof host, cudaMemcpyHostToDevice, s[0]);
    add<<<1, 32, 0, s[0]>>>(a, 2);
    cudaEventRecord(e, s[0]), cudaStreamWaitEvent(s[1], e, 0);
    add<<<1, 32, 0, s[1]>>>(a, 3);
    cudaLaunchHostFunc(s[1], raise, &called);
    cudaMemcpyAsync(host, a, sizeof host, cudaMemcpyDeviceToHost, s[1]);
    cudaStreamSynchronize(s[1]);
    return !(host[31] == 5 && called == 1 && cudaEventQuery(e) == cudaSuccess);
}
