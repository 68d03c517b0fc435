// feature: CUDA graphs, captured from a stream
__global__ void add(int *a) { atomicAdd(a, 1); }
int main() {
    int *a;
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t run;
    cudaMallocManaged(&a, 4), cudaStreamCreate(&s);
    if (cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal) != cudaSuccess) return 1;
    add<<<1, 32, 0, s>>>(a), add<<<1, 32, 0, s>>>(a);
    cudaStreamEndCapture(s, &graph), cudaGraphInstantiate(&run, graph, 0);
    int before = *a;
    cudaGraphLaunch(run, s), cudaGraphLaunch(run, s), cudaStreamSynchronize(s);
    return !(before == 0 && *a == 128);
}
