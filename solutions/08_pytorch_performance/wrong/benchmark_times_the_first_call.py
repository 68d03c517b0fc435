# exercise: pytorch.benchmark  fails: right  says: first wrong: compiled
from gpulab.exercises.lab_08_pytorch_performance import ClockedGPU


def benchmark(machine):
    gpu = ClockedGPU(machine)
    times = []
    for _ in range(20):
        gpu.flush()
        gpu.synchronize()
        began = gpu.now()
        gpu.call()
        gpu.synchronize()
        times.append(gpu.now() - began)
    return sum(times) / len(times)
