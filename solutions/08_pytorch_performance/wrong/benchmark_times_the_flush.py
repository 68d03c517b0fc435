# exercise: pytorch.benchmark  fails: right  says: first wrong: cached
import statistics

from gpulab.exercises.lab_08_pytorch_performance import ClockedGPU


def benchmark(machine):
    gpu = ClockedGPU(machine)
    gpu.call()
    gpu.synchronize()
    times = []
    for _ in range(21):
        began = gpu.now()
        gpu.flush()
        gpu.call()
        gpu.synchronize()
        times.append(gpu.now() - began)
    return statistics.median(times)
